"""With `picket up`: what breaks is told by mail, webhook and status page, and so is its repair."""

from pathlib import Path

import pytest

from tests.system.alert_chain import a_chain, close_and_open


@pytest.mark.timeout(600)
async def test_closing_the_shop_reaches_all_three_once_and_so_does_opening_it(
    tmp_path: Path,
) -> None:
    async with a_chain(tmp_path) as chain:
        closed, opened = await close_and_open(chain, await chain.set_up(), print)
        page = await chain.page()
    assert {one.where for one in closed} == {"mail", "signed webhook", "status page"}
    assert {one.where for one in opened} == {"mail", "signed webhook", "status page"}
    assert len(chain.box.mails) == len(chain.receiver.taken) == 2
    assert chain.receiver.refused == 0
    assert page["state"] == "OPERATIONAL"
    assert page["currentIncidents"] == []
