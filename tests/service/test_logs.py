import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import structlog

from service.logs import configure
from service.settings import LogFormat, LogLevel
from tests.servers.service import RunningService, serve_service

SECRET = "nightly-7c1f"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    chosen = structlog.get_config()
    yield
    structlog.configure(**chosen)
    logging.root.handlers = handlers
    logging.root.setLevel(level)


async def break_the_pings(service: RunningService, database: Path) -> None:
    """A fault of ours, with a secret in the path, the headers and the statement."""
    with contextlib.closing(sqlite3.connect(database)) as broken:
        broken.execute("DROP TABLE ping")
    async with (
        aiohttp.ClientSession() as http,
        http.get(
            f"{service.url}/ping/{SECRET}", headers={"authorization": f"Bearer {SECRET}"}
        ) as answer,
    ):
        assert answer.status == 500
        assert SECRET not in await answer.text()


@pytest.mark.parametrize("log_format", list(LogFormat))
async def test_a_fault_of_ours_is_logged_without_any_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    configure(LogLevel.INFO, log_format)
    async with serve_service(tmp_path) as service:
        heartbeat = {"period": 1, "periodUnit": "hours", "grace": 0, "graceUnit": "hours"}
        body = {"name": "Nightly", "heartbeat": {**heartbeat, "pingToken": SECRET}}
        assert (await service.alice.post("/v1/checks/heartbeat", body)).status == 201
        await break_the_pings(service, tmp_path / "service.db")
        keys = (service.secrets.api_key, service.secrets.location_key)
    told = capsys.readouterr().out
    assert "http.failed" in told
    assert "/ping/{token}" in told
    assert not [one for one in (SECRET, *keys) if one in told]
