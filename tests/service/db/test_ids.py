from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from service.db.ids import new_id, new_ids, time_of

TIMES = st.integers(min_value=0, max_value=(1 << 48) - 1)


@given(TIMES)
def test_an_id_carries_its_time_and_is_a_uuid_of_version_7(at_ms: int) -> None:
    made = new_id(at_ms)
    assert time_of(made) == at_ms
    assert UUID(made).version == 7
    assert UUID(made).variant == "specified in RFC 4122"


@given(TIMES, TIMES)
def test_ids_sort_by_time(first_ms: int, second_ms: int) -> None:
    if first_ms < second_ms:
        assert new_id(first_ms) < new_id(second_ms)


def test_ids_of_one_moment_differ() -> None:
    assert len({new_id(1) for _ in range(1000)}) == 1000


@given(st.lists(TIMES))
def test_ids_that_are_made_at_once_carry_their_times_and_differ(times: list[int]) -> None:
    made = new_ids(times)
    assert [time_of(one) for one in made] == times
    assert all(UUID(one).variant == "specified in RFC 4122" for one in made)
    assert len(set(made)) == len(made)


def test_what_is_no_id_of_ours_has_no_time() -> None:
    assert time_of("nonsense") is None
    assert time_of("00000000-0000-4000-8000-000000000000") is None
