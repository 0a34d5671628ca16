"""Of what a run tells of its browsers, those are lost that did not come by no doing of its own."""

from runners.scripting.playwright.reporter import (
    Launched,
    Launches,
    LaunchFact,
    LaunchFailed,
    Launching,
    LostLaunch,
)

FAILED = LaunchFailed(launch="1-0", message="closed", waited_ms=200)
LONG_MS = 30_000


def lost(*facts: LaunchFact, stopped_at_ms: float | None = None) -> LostLaunch | None:
    launches = Launches()
    for fact in facts:
        launches.take(fact)
    return launches.lost(stopped_at_ms=stopped_at_ms)


def is_slow(*facts: LaunchFact, stopped_at_ms: float | None = None) -> bool:
    found = lost(*facts, stopped_at_ms=stopped_at_ms)
    assert found is not None
    return found.is_slow


def test_browsers_that_came_are_not_lost() -> None:
    assert lost() is None
    assert lost(Launching(launch="1-0"), Launched(launch="1-0")) is None


def test_a_launch_that_failed_is_lost_whatever_came_then() -> None:
    own = LaunchFailed(launch="2-0", message="own", own=True)
    assert lost(FAILED, own, Launched(launch="3-0")) == LostLaunch(message="closed", is_slow=False)


def test_a_launch_that_nobody_heard_of_again_is_lost() -> None:
    assert lost(Launching(launch="1-0"), Launching(launch="2-0"), Launched(launch="1-0"))


def test_the_machine_was_slow_where_a_launch_took_long_by_itself() -> None:
    long = LaunchFailed(message="Timeout", waited_ms=LONG_MS)
    assert is_slow(FAILED, long)
    assert not is_slow(LaunchFailed(message="Timeout", waited_ms=LONG_MS, own=True))


def test_a_launch_under_way_at_the_stop_took_until_then() -> None:
    begun = Launching(launch="1-0", at=1000)
    assert is_slow(begun, stopped_at_ms=1000 + LONG_MS)
    assert not is_slow(begun, stopped_at_ms=2000)
    assert not is_slow(begun), "the script kept its process busy"
    own = Launching(launch="1-0", at=1000, own=True)
    assert not is_slow(own, stopped_at_ms=1000 + LONG_MS)


def test_what_is_forgiven_is_not_lost() -> None:
    launches = Launches()
    launches.take(FAILED)
    launches.take(Launching(launch="2-0"))
    launches.clear()
    assert launches.lost(stopped_at_ms=None) is None


def test_what_a_run_tells_is_bounded() -> None:
    launches = Launches()
    for number in range(1000):
        launches.take(Launching(launch=str(number), at=1))
    assert launches.lost(stopped_at_ms=None) is not None
    for number in range(100):
        launches.take(Launched(launch=str(number)))
    assert launches.lost(stopped_at_ms=None) is None
