from pathlib import Path

import pytest
from sqlalchemy import text

from service.results import store
from service.results.model import ResultFilter
from tests.builders.world import World, a_result

HUGE_BYTES = 4_000_000


def bytes_read() -> int:
    """What this process has read of files so far."""
    try:
        counts = Path("/proc/self/io").read_text()
    except PermissionError:
        pytest.skip("an agent has closed this process to its own user, in a test before this one")
    return int(counts.split("rchar: ")[1].split()[0])


async def test_a_list_reads_nothing_of_the_details_that_it_leaves_out(world: World) -> None:
    check_id = await world.check()
    for _ in range(4):
        await world.queue(check_id)
    await world.submit(*(a_result(job) for job in await world.claim()))
    huge = {"size": HUGE_BYTES}
    for statement in (
        "UPDATE run_final SET body = zeroblob(:size) WHERE run_id > 2",
        "UPDATE run_final SET body = NULL WHERE run_id <= 2",
        "INSERT INTO result_detail SELECT id, zeroblob(:size) FROM result WHERE run_id <= 2",
    ):
        await world.database.write(lambda c, one=statement: c.execute(text(one), huge))
    before = bytes_read()
    listed = await world.database.read(
        lambda c: store.of_check(c, check_id, ResultFilter(), limit=100, offset=0)
    )
    assert [one.is_cut for one in listed] == [True] * 4
    assert bytes_read() - before < HUGE_BYTES
