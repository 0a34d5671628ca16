from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.results.model import RunStatus
from service.sessions.model import Session, SessionStatus
from service.sessions.rules import deadline_ms, latest_starts, matches_tags, render_status, worse

TAGS = st.lists(st.sampled_from(["a", "b", "c"]))


def a_session(status: SessionStatus, *, stopped_ms: int | None = None) -> Session:
    return Session(
        id="s",
        check_id="c",
        check_type="URL",
        name="n",
        locations=("default",),
        status=status,
        pending=1,
        started_ms=1000,
        stopped_ms=stopped_ms,
    )


@given(st.permutations(list(RunStatus)))
def test_the_worst_run_counts_in_whatever_order_runs_end(runs: list[RunStatus]) -> None:
    status = SessionStatus.STARTED
    for run in runs:
        status = worse(status, run)
    assert status is SessionStatus.FAILED


@pytest.mark.parametrize("run", RunStatus)
def test_one_run_makes_one_final_status(run: RunStatus) -> None:
    unjudged = run in (RunStatus.MISSED, RunStatus.ERROR)
    expected = SessionStatus.FAILED if unjudged else SessionStatus(run.value)
    assert worse(SessionStatus.STARTED, run) is expected


def test_a_session_that_goes_on_shows_no_final_status() -> None:
    on_the_way = {
        SessionStatus.STARTED: SessionStatus.STARTED,
        SessionStatus.PASSED: SessionStatus.PROGRESS,
        SessionStatus.DEGRADED: SessionStatus.PROGRESS_DEGRADED,
        SessionStatus.TIMED_OUT: SessionStatus.PROGRESS_FAILED,
        SessionStatus.FAILED: SessionStatus.PROGRESS_FAILED,
    }
    for stored, shown in on_the_way.items():
        assert render_status(a_session(stored)) is shown
        assert render_status(a_session(stored, stopped_ms=2000)) is stored


def test_a_session_has_a_deadline() -> None:
    assert deadline_ms(a_session(SessionStatus.STARTED)) == 1000 + 20 * 60_000


@given(
    kind=st.sampled_from(["URL", "BROWSER", "PLAYWRIGHT"]),
    turn=st.none() | st.integers(0, 9),
    started_ms=st.integers(0, 200_000_000),
    now_ms=st.integers(0, 200_000_000),
)
def test_who_started_later_than_the_latest_start_is_not_late(
    kind: str, turn: int | None, started_ms: int, now_ms: int
) -> None:
    started = a_session(SessionStatus.STARTED)
    session = replace(started, check_type=kind, turn=turn, started_ms=started_ms)
    starts = latest_starts(now_ms)
    if started_ms > (starts.running_ms if turn is None else starts.waiting_ms):
        assert now_ms < deadline_ms(session)


def test_groups_of_tags_are_alternatives_and_a_group_holds_wholly() -> None:
    assert matches_tags(["a", "b"], [["a", "b"]])
    assert not matches_tags(["a"], [["a", "b"]])
    assert matches_tags(["a"], [["a", "b"], ["a"]])
    assert matches_tags(["a"], [["a", "!b"]])
    assert not matches_tags(["a", "b"], [["a", "!b"]])
    assert matches_tags([], [["!b"]])


@given(TAGS, st.sampled_from(["a", "b", "c"]))
def test_a_tag_matches_exactly_when_its_denial_does_not(tags: list[str], tag: str) -> None:
    assert matches_tags(tags, [[tag]]) != matches_tags(tags, [["!" + tag]])
