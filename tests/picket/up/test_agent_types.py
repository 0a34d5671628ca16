"""What `picket up` makes of the agents that the service knows."""

import asyncio
from contextlib import suppress
from typing import Any

from contract.checks import CheckType
from picket.up import agent_types
from picket.up.demo_target import DemoPorts
from picket.up.starter_checks import starter_checks
from runners.registry import RUNNABLE
from tests.builders.agent_types import an_agent, types_at
from tests.builders.patience import LONG_S

NO_BROWSER = (CheckType.BROWSER, False)
OTHERS = set(RUNNABLE) - {CheckType.BROWSER}


async def test_the_agent_of_an_earlier_start_does_not_count() -> None:
    types = types_at(an_agent("old", taken=set(RUNNABLE)))
    assert not await types.look()
    assert not types.is_known


async def test_a_type_that_the_agent_cannot_run_gets_a_line_and_no_starter_check() -> None:
    lost = ((CheckType.BROWSER, False), (CheckType.API, True))
    types = types_at(an_agent("ours", *lost, taken=set(RUNNABLE) - {CheckType.BROWSER}))
    assert await types.look()
    assert types.is_known
    assert types.lines == (
        "BROWSER checks cannot run here: no Node; set it up.",
        "API checks with scripts cannot run here: no Node; set it up.",
    )
    every = starter_checks(DemoPorts(), location="default")
    assert all(types.lacks(check) is not types.runs(check) for check in every)
    left_out = [check for check in every if not types.runs(check)]
    assert {check.kind for check in left_out} == {CheckType.BROWSER, CheckType.API}
    assert all(
        "localSetupScript" in check.body for check in left_out if check.kind is CheckType.API
    )


async def test_types_that_were_not_tried_yet_are_waited_for_within_a_limit(
    monkeypatch: Any,
) -> None:
    types = types_at(an_agent("ours", taken={CheckType.URL}))
    assert await types.look()
    assert not types.is_known
    monkeypatch.setattr(agent_types, "_MOST_TRYING_S", 0.0)
    assert types.is_known


async def test_no_check_of_a_type_that_was_not_tried_yet_runs() -> None:
    types = types_at(an_agent("ours", taken={CheckType.URL, CheckType.API}))
    assert await types.look()
    every = starter_checks(DemoPorts(), location="default")
    running = [check for check in every if types.runs(check)]
    assert {check.kind for check in running} == {CheckType.URL, CheckType.API}
    assert not any(check.has_scripts for check in running)
    assert not any(types.lacks(check) for check in every)


async def test_a_cause_is_printed_again_when_more_than_its_figures_changed(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(agent_types, "_LOOK_AGAIN_EVERY_S", 0.01)
    causes = ("busy (load 5.3)", "busy (load 6.25)", "no Chromium")
    agents = [an_agent("ours", NO_BROWSER, taken=OTHERS, cause=cause) for cause in causes]
    types, told, set_up_for = types_at(*agents), asyncio.Queue[str](), list[str]()
    assert await types.look()

    async def set_up() -> None:
        set_up_for.append(types.unavailable[0].cause)

    following = asyncio.create_task(types.follow(told.put_nowait, set_up, lambda: None))
    async with asyncio.timeout(LONG_S):
        lines = [await told.get(), await told.get()]
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    assert [line.split(": ")[1] for line in lines] == [
        "busy (load 5.3); set it up.",
        "no Chromium; set it up.",
    ]
    assert set_up_for == ["busy (load 5.3)", "no Chromium"]
