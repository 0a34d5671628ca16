from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.incidents.model import IncidentStatus, IncidentUpdate
from service.incidents.rules import find_course, find_status, is_open

I, D, M, R = IncidentStatus  # noqa: E741 - in the order in which people go through them


def updates(*said: tuple[int, IncidentStatus]) -> list[IncidentUpdate]:
    """Updates at seconds, in the order in which they were made."""
    return [
        IncidentUpdate(
            id=str(order),
            incident_id="i",
            status=status,
            description="x",
            public_ms=at_s * 1000,
            notifies=False,
            created_ms=order,
        )
        for order, (at_s, status) in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("said", "now_s", "duration_s", "opened", "status"),
    [
        pytest.param([(10, I)], 10, 0, True, I, id="just opened"),
        pytest.param([(10, I)], 70, 60, True, I, id="ongoing counts to now"),
        pytest.param([(10, I), (40, R)], 100, 30, False, R, id="closed"),
        pytest.param([(10, I), (20, D), (30, M), (40, R)], 99, 30, False, R, id="all statuses"),
        pytest.param([(10, I), (40, R), (60, R)], 100, 30, False, R, id="resolved once more"),
        pytest.param([(10, I), (40, R), (60, M)], 100, 90, True, M, id="re-opened"),
        pytest.param([(10, I), (40, R), (60, M), (80, R)], 100, 70, False, R, id="closed again"),
        pytest.param(
            [(10, I), (40, R), (60, M), (80, R), (90, R)], 100, 70, False, R, id="and resolved"
        ),
        pytest.param([(10, R)], 100, 0, False, R, id="told when it was over"),
        pytest.param([(40, R), (10, I)], 100, 30, False, R, id="an earlier one told later"),
        pytest.param([(10, I), (10, R)], 100, 0, False, R, id="at one time: as they were made"),
        pytest.param([(10, I), (80, R)], 50, 40, True, I, id="a resolution that is to come"),
    ],
)
def test_an_incident_lasts_from_its_first_update_to_the_resolution_that_closed_it(
    *,
    said: list[tuple[int, IncidentStatus]],
    now_s: int,
    duration_s: int,
    opened: bool,
    status: IncidentStatus,
) -> None:
    found, now_ms = updates(*said), now_s * 1000
    course = find_course(found, now_ms=now_ms)
    assert course is not None
    assert course.duration_s(now_ms) == duration_s
    assert is_open(found, now_ms=now_ms) is opened
    assert find_status(found, now_ms=now_ms) is status


def test_an_incident_without_a_public_update_has_not_begun() -> None:
    found = updates((60, I), (80, R))
    assert find_course(found, now_ms=50_000) is None
    assert not is_open(found, now_ms=50_000)
    assert find_status(found, now_ms=50_000) is I


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(IncidentStatus)), min_size=1))
def test_the_course_does_not_depend_on_the_order_in_which_updates_are_read(
    said: list[tuple[int, IncidentStatus]],
) -> None:
    found = updates(*said)
    mixed = Random(1).sample(found, len(found))
    assert find_course(mixed, now_ms=60_000) == find_course(found, now_ms=60_000)


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(IncidentStatus)), min_size=1))
def test_another_resolution_at_the_end_changes_nothing_of_what_is_closed(
    said: list[tuple[int, IncidentStatus]],
) -> None:
    found = updates(*said)
    before = find_course(found, now_ms=90_000)
    assert before is not None
    if before.ended_ms is not None:
        after = find_course(updates(*said, (60, R)), now_ms=90_000)
        assert after == before
