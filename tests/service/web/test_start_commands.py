"""The commands that start an agent of a location."""

import shlex

import pytest
import yaml

from service.web.locations.start_commands import is_loopback, list_commands

KEY = "pl_" + "k" * 43
PUBLIC = "https://monitoring.shop.example/picket"


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost:8080", True),
        ("http://[::1]:8080", True),
        ("http://10.1.2.3:8080", False),
        (PUBLIC, False),
    ],
)
def test_a_container_shares_the_network_of_a_host_that_alone_reaches_the_service(
    url: str, *, is_local: bool
) -> None:
    docker, full, compose, *_ = list_commands(url, KEY)
    assert is_loopback(url) is is_local
    assert ("--network host" in docker.text) is is_local
    assert ("--network host" in full.text) is is_local
    service = yaml.safe_load(compose.text)["services"]["agent"]
    assert ("network_mode" in service) is is_local
    assert service["environment"] == {"SERVICE_URL": url, "API_KEY": KEY}
    for one in (docker, full, compose):
        assert ("127.0.0.1 inside a container" in one.note) is is_local


def test_each_command_names_the_service_the_key_and_where_the_image_comes_from() -> None:
    commands = {one.name: one for one in list_commands(PUBLIC, KEY)}
    assert list(commands) == [
        "Docker, light",
        "Docker, full: with browsers",
        "Compose, light",
        "Helm",
        "systemd",
        "In a terminal",
    ]
    for one in commands.values():
        assert PUBLIC in one.text
        assert KEY in one.text
    for name in list(commands)[:4]:
        assert "make images" in commands[name].text + commands[name].note
    for name, image in zip(list(commands)[:2], ("picket-agent", "picket-agent-full"), strict=True):
        words = shlex.split(commands[name].text)
        assert (words[:2], words[-1]) == (["make", "images"], image)
        assert f"image, {image}:" in commands[name].note


def test_an_agent_on_another_machine_is_not_sent_to_its_own_loopback() -> None:
    for one in list_commands("http://127.0.0.1:8080", KEY):
        if one.name in ("Helm", "systemd"):
            assert "127.0.0.1" not in one.text
            assert "SERVICE_PUBLIC_URL" in one.note
