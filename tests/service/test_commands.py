"""`keys`, `accounts`, `audit` and `openapi`, beside a running service."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.accounts.authentication import REMEMBER_S
from service.cli import run
from tests.builders.patience import LONG_S
from tests.servers.service import RunningService, serve_service


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningService]:
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'service.db'}")
    async with serve_service(tmp_path) as running:
        yield running


async def command(*arguments: str) -> int:
    """A command at the service's machine; it has an event loop of its own."""
    return await asyncio.to_thread(run, arguments)


async def ask(service: RunningService, key: str, path: str = "/v1/accounts/me") -> int:
    headers = {"authorization": f"Bearer {key}"}
    async with service.http.get(service.url + path, headers=headers) as answer:
        return answer.status


async def test_a_key_is_made_listed_and_revoked_while_the_service_runs(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("keys", "create", "--name", "ci", "--role", "read_only") == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("cu_")
    assert await ask(service, key) == 200
    assert await command("keys", "list") == 0
    listed = capsys.readouterr().out
    assert key not in listed
    (line,) = [one for one in listed.splitlines() if "  ci" in one]
    assert "READ_ONLY" in line
    assert await command("keys", "revoke", line.split()[0]) == 0
    await asyncio.sleep(REMEMBER_S + 0.2)
    assert await ask(service, key) == 401
    assert await command("keys", "revoke", line.split()[0]) == 2


async def test_several_accounts_live_in_one_service(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("accounts", "create", "Shop") == 0
    account_id = capsys.readouterr().out.strip()
    assert await command("keys", "create") == 2
    assert "2 accounts; name one with --account" in capsys.readouterr().err
    assert await command("keys", "create", "--account", "nobody") == 2
    assert "There is no account nobody" in capsys.readouterr().err
    assert await command("keys", "create", "--program", "--account", account_id) == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("sv_")
    assert await ask(service, key, f"/v1/accounts/{account_id}") == 200
    assert await ask(service, key, f"/v1/accounts/{service.secrets.account_id}") == 404
    assert await command("accounts", "list") == 0
    assert "Shop" in capsys.readouterr().out


async def test_changes_by_command_and_by_request_are_in_the_audit_log(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    check_id = await service.a_url_check()
    await command("keys", "create", "--name", "ci")
    capsys.readouterr()
    assert await command("audit") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["operation"], one["resource"]) for one in lines] == [
        ("keys create", "keys"),
        ("createUrlCheck", "checks"),
    ]
    assert lines[1]["resource_id"] == check_id
    assert lines[0]["key_id"] is None
    assert await command("audit", "--limit", "1", "--account", "nobody") == 0
    assert capsys.readouterr().out == ""


def test_without_a_database_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path / "nowhere"))
    assert run(["keys", "list"]) == 2
    assert f"there is no database at {tmp_path / 'nowhere'}" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_the_document_is_printed_without_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["openapi"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["openapi"].startswith("3.1")
    assert "/v1/checks/url" in printed["paths"]
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_option_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "create", "--rolle", "x"]) == 2
    assert "--rolle" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["keys", "accounts", "audit", "openapi"])
def test_the_service_alone_takes_its_commands(command: str) -> None:
    """Its image has no `picket`."""
    arguments = [sys.executable, "-m", "service", command, "--help"]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=LONG_S)
    assert told.stdout.startswith(f"Usage: python -m service {command}")
