"""`users` and `sign-in`, beside a running service."""

import asyncio
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.cli import run
from tests.builders.web_users import PASSWORD
from tests.servers.service import RunningService, serve_service


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningService]:
    async with serve_service(tmp_path) as running:
        monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'service.db'}")
        monkeypatch.setenv("SERVICE_PUBLIC_URL", running.url)
        yield running


async def command(*arguments: str) -> int:
    """A command at the service's machine; it has an event loop of its own."""
    return await asyncio.to_thread(run, arguments)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password on standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))


async def enter(service: RunningService, email: str, password: str = PASSWORD) -> int:
    form = {"email": email, "password": password}
    async with service.http.post(
        service.url + "/sign-in", data=form, allow_redirects=False
    ) as answer:
        return answer.status


def printed_link(capsys: pytest.CaptureFixture[str]) -> str:
    """The link; the service in this process logs to the same place."""
    return re.findall(
        r"http://127\.0\.0\.1:\d+/(?:sign-in|password)/[\w-]{43}", capsys.readouterr().out
    )[-1]


async def follow(service: RunningService, url: str) -> int:
    async with service.http.post(url, allow_redirects=False) as answer:
        return answer.status


@pytest.mark.usefixtures("typed")
async def test_a_user_is_created_signs_in_is_disabled_and_enabled(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("users", "create", "ann@example.com", "--role", "read_only") == 0
    assert await enter(service, "ann@example.com") == 303
    assert await command("users", "list") == 0
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert "READ_ONLY" in said.out
    assert await command("users", "disable", "ANN@example.com") == 0
    assert await enter(service, "ann@example.com") == 422
    assert await command("users", "enable", "ann@example.com") == 0
    assert await enter(service, "ann@example.com") == 303


async def test_a_link_sets_a_password_and_another_one_signs_in(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("users", "create", "ann@example.com", "--link") == 0
    link = printed_link(capsys)
    async with service.http.post(
        link, data={"password": PASSWORD}, allow_redirects=False
    ) as answer:
        assert answer.status == 303
    assert await command("sign-in", "--user", "ann@example.com") == 0
    link = printed_link(capsys)
    assert [await follow(service, link) for _ in range(2)] == [303, 422]


async def test_without_options_a_link_is_of_a_key_that_may_write(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("sign-in") == 0
    link = printed_link(capsys)

    assert link.startswith(service.url + "/sign-in/")
    assert await follow(service, link) == 303


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("users", "create", "ann"), "is no mail address"),
        (("users", "password", "nobody@example.com"), "no user nobody@example.com"),
        (("users", "disable", "nobody@example.com"), "no user nobody@example.com"),
        (("users", "create", "a@example.com", "--account", "x"), "no account x"),
        (("sign-in", "--key", "x"), "no valid key x"),
        (("sign-in", "--key", "x", "--user", "y"), "both given"),
    ],
)
@pytest.mark.usefixtures("typed", "service")
async def test_what_cannot_be_done_is_one_sentence(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command(*arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


async def test_a_password_that_is_too_short_is_refused(
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))

    assert await command("users", "create", "ann@example.com") == 2
    assert "5 characters; use 12 to 256" in capsys.readouterr().err
