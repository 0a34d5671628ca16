"""The service's commands under our name."""

import fcntl
import json
from pathlib import Path

import pytest

from picket.__main__ import main
from picket.service_access import tell_port


def test_the_document_is_printed_without_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi"]) == 0
    assert "/v1/checks/url" in json.loads(capsys.readouterr().out)["paths"]


def test_a_command_tells_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "create", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: picket keys create")


def test_a_refusal_and_a_wrong_option_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path / "nowhere"))
    assert main(["keys", "list"]) == 2
    assert capsys.readouterr().err.startswith("picket: there is no database at")
    assert main(["audit", "--limit", "0"]) == 2
    assert "see picket audit --help" in capsys.readouterr().err


def test_links_lead_to_the_port_that_picket_up_has_chosen(tmp_path: Path) -> None:
    (tmp_path / "service-url").write_text("http://127.0.0.1:22505")
    held: dict[str, str] = {}
    tell_port(held, tmp_path)
    assert held == {}  # nobody runs there now: another program may have the port
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tell_port(held, tmp_path)
        named = {"SERVICE_PUBLIC_URL": "https://picket.example"}
        tell_port(named, tmp_path)
    assert held == {"SERVICE_PORT": "22505"}
    assert "SERVICE_PORT" not in named


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit", "--limit", "x"), "--limit is x; use 1 to 100000"),
        (("audit", "--limit", "0"), "--limit is 0; use 1 to 100000"),
        (("keys", "create", "--role", "BOSS"), "--role is BOSS; use READ_ONLY or READ_WRITE"),
    ],
)
def test_an_option_that_cannot_be_is_one_sentence_with_its_value(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"picket: {said}; see picket {_command(arguments)} --help\n"


def _command(arguments: tuple[str, ...]) -> str:
    return " ".join(arguments[: next(i for i, one in enumerate(arguments) if one[0] == "-")])


def test_the_service_has_its_commands_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path / "nowhere"))
    assert main(["service", "users", "create", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: picket service users create")
    assert main(["service", "users", "list"]) == 2
    assert capsys.readouterr().err.startswith("picket: there is no database at")
    assert main(["service", "nothing"]) == 2
    assert "see picket service --help" in capsys.readouterr().err
