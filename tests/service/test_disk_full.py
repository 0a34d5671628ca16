"""What callers, agents and the log are told while the service's disk is full."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from service.db import databases
from service.db.engine import Line
from service.db.sqlite import SqliteDatabase
from tests.servers.service import serve_service

GROUP = {"name": "Shop", "tags": ["x" * 90] * 20}


def allow_pages(most: int) -> Callable[[Connection], object]:
    return lambda c: c.execute(text(f"PRAGMA max_page_count = {most}")).scalar_one()


async def test_a_full_disk_is_answered_with_507_and_is_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[SqliteDatabase] = []
    open_sqlite = databases.open_sqlite

    def opening(path: Path, **options: Any) -> SqliteDatabase:
        opened.append(open_sqlite(path, **options))
        return opened[-1]

    monkeypatch.setattr(databases, "open_sqlite", opening)
    async with serve_service(tmp_path) as service:
        for brief in (None, Line.RESULTS):  # each has a connection of its own
            await opened[-1].write(allow_pages(1), brief=brief)
        with capture_logs() as logs:
            # A page that is half empty still takes some groups.
            answers = [await service.alice.post("/v1/check-groups", GROUP) for _ in range(40)]
            hello = await service.hello()
        refused = [answer for answer in answers if answer.status != 201]
        assert {(one.status, one.body["error"]) for one in refused} == {
            (507, "Insufficient Storage")
        }
        assert "retry-after" in refused[0].headers
        assert hello.status in {200, 507}
        assert (await service.alice.get("/v1/check-groups")).status == 200
        events = [one["event"] for one in logs if one["log_level"] in {"warning", "error"}]
        assert events == ["database.disk_full"]
        for brief in (None, Line.RESULTS):
            await opened[-1].write(allow_pages(1_000_000), brief=brief)
        assert (await service.alice.post("/v1/check-groups", GROUP)).status == 201
