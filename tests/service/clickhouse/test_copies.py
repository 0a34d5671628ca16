"""Results go to ClickHouse and come back over HTTP, as the service's client sends them."""

import asyncio

import pytest

from service.clickhouse.copies import ClickHouse
from service.clickhouse.model import ArchiveError
from service.results.model import Finished, RunStatus
from tests.builders.runs import BEGIN_MS
from tests.servers.clickhouse import serve_clickhouse


def _final(number: int) -> Finished:
    return Finished(
        id=f"it's {number:04}",
        check_id=f"check {number % 2}",
        started_ms=BEGIN_MS + number,
        location="Zürich",
        status=(RunStatus.PASSED, RunStatus.FAILED)[number % 2],
        attempt=number % 3 + 1,
        response_time_ms=number / 3 if number % 5 else None,
        body=f'{{"é": {number}}}'.encode() if number % 7 else None,
    )


async def test_results_come_back_as_they_were_sent_and_each_once() -> None:
    sent = [_final(number) for number in range(500)]
    wanted, window = ["check 0", "check 1", "it's none"], (BEGIN_MS, BEGIN_MS + 400)
    expected = sorted(sent[:400], key=lambda one: (one.check_id, one.started_ms))
    async with serve_clickhouse() as url:
        clickhouse = ClickHouse(url, days=0)

        def exchange() -> tuple[list[Finished], list[Finished], int]:
            assert not clickhouse.has_table()
            clickhouse.create_table()
            assert clickhouse.has_table()
            clickhouse.insert(sent, version=1)
            clickhouse.insert(
                [one._replace(status=RunStatus.DEGRADED) for one in sent[:9]], version=3
            )
            clickhouse.insert(sent[:9], version=2)
            clickhouse.insert([], version=4)
            whole = clickhouse.list_finals(wanted, window=window, with_bodies=True)
            bare = clickhouse.list_finals(wanted, window=window, with_bodies=False)
            return list(whole), list(bare), clickhouse.count_finals(wanted, window=window)

        whole, bare, count = await asyncio.to_thread(exchange)
        clickhouse.close()
    newest = {one.id for one in sent[:9]}
    expected = [
        one._replace(status=RunStatus.DEGRADED) if one.id in newest else one for one in expected
    ]
    assert whole == expected
    assert bare == [one._replace(body=None) for one in expected]
    assert count == 400


async def test_a_wrong_password_is_said_in_a_few_words() -> None:
    async with serve_clickhouse() as url:
        clickhouse = ClickHouse(url.replace("hunter2", "hunter3"), days=0)
        with pytest.raises(ArchiveError) as caught:
            await asyncio.to_thread(clickhouse.has_table)
    assert caught.value.reason == "it refused the user or the password"
