"""The first browser check that fails prints how to open its trace, once."""

import asyncio
from pathlib import Path

from picket.api_client import ApiRefusedError, PublicApi
from picket.report import trace_command
from picket.up.command import FirstTrace
from tests.builders.patience import LONG_S
from tests.picket.up.test_dashboard import a_new_result

TRACE = "/v1/check-results/check/1/assets/trace.zip"


class StoredFiles(PublicApi):
    """Has these files, and refuses all others."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    async def file(self, path: str) -> bytes:
        if path not in self._files:
            raise ApiRefusedError(path, 404, "Not Found")
        return self._files[path]


def a_first_trace(folder: Path) -> tuple[FirstTrace, list[str]]:
    said: list[str] = []
    return FirstTrace(StoredFiles({TRACE: b"PK"}), folder / "traces", said.append), said


async def test_the_first_that_failed_is_fetched_and_told(tmp_path: Path) -> None:
    first, said = a_first_trace(tmp_path)
    first.watch([a_new_result(1, trace=TRACE), a_new_result(2, "FAILED")])
    first.watch([a_new_result(number, "FAILED", trace=TRACE) for number in (3, 4)])
    async with asyncio.timeout(LONG_S):
        await first.fetch()
    path = tmp_path / "traces/result-3.zip"
    assert said == [f"trace    of “Front page”: {trace_command(path)}"]
    assert path.read_bytes() == b"PK"


async def test_one_that_is_gone_makes_room_for_the_next(tmp_path: Path) -> None:
    first, said = a_first_trace(tmp_path)
    first.watch([a_new_result(1, "FAILED", trace="/gone")])
    fetching = asyncio.create_task(first.fetch())
    async with asyncio.timeout(LONG_S):
        while not said:
            await asyncio.sleep(0)
            first.watch([a_new_result(2, "TIMED_OUT", trace=TRACE)])
        await fetching
    assert "result-2.zip" in said[0]
