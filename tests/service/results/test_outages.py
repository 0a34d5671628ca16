"""Due times while the service was away: one row stands for many, wherever a window cuts it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.results import actions as results
from service.results.model import Cause, RunStatus
from service.results.outcomes import count_due
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import a_record, store_all
from tests.servers.public_api import PublicApi

MINUTE = 60_000
HOUR = 60 * MINUTE


@given(
    st.integers(0, 500), st.integers(1, 50), st.integers(2, 40), st.integers(0, 999),
    st.integers(1, 800),
)  # fmt: skip
def test_due_times_in_a_window_are_counted_one_by_one(
    first: int, step: int, count: int, start: int, length: int
) -> None:
    times = [first + number * step for number in range(count)]
    window = (start, start + length)

    found = count_due(times[0], times[-1], count, window=window)

    assert found == sum(window[0] <= at < window[1] for at in times)


@pytest.mark.parametrize(
    ("began_h", "ended_h", "due"), [(10, 5, 0), (10, 2, 13), (10, 0.5, 31), (2.5, 0.5, 25)]
)
async def test_what_was_missed_in_a_window_counts_though_the_outage_began_before(
    api: PublicApi, began_h: float, ended_h: float, due: int
) -> None:
    made = await api.alice.post("/v1/checks/url", check_body("url", frequency=5))
    place, check_id = api.alice.secrets.location_id, made.body["id"]
    now_ms = await api.database.read(api.backend.clock.now_ms)
    window = (now_ms - 3 * HOUR, now_ms)
    began_ms, ended_ms = (int(now_ms - hours * HOUR) for hours in (began_h, ended_h))
    row = a_record(
        made.body,
        location_id=place,
        started_ms=began_ms,
        cause=Cause.SERVICE_DOWN,
        stopped_ms=ended_ms,
        due_times=(ended_ms - began_ms) // (5 * MINUTE) + 1,
    )
    await store_all(api, [row])

    def count(connection: Any) -> tuple[int, int, int]:
        outcomes = results.count_outcomes(connection, check_id, window=window)
        endings = results.list_endings(connection, [check_id], window=window)
        account_id = api.alice.secrets.account_id
        causes = results.count_causes(connection, account_id, "default", from_ms=window[0])
        return (
            outcomes.get((RunStatus.MISSED, Cause.SERVICE_DOWN), 0),
            sum(one.due_times or 1 for one in endings.get(check_id, ())),
            causes.get(Cause.SERVICE_DOWN, 0),
        )

    assert await api.database.read(count) == (due, due, due)
