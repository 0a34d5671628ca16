import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.net.http.phases import HopTimings, find_hung_phase, sum_timings
from runners.net.http.transfer import CurlTimings

MOMENTS = st.integers(min_value=0, max_value=30_000_000)


def a_hop(times: CurlTimings, *, resolves: bool = True) -> HopTimings:
    return HopTimings(times=times, resolves=resolves, answered=True)


def test_a_lookup_whose_clock_ran_before_its_turn_came_took_no_time() -> None:
    """Of QUIC's, on a busy machine."""
    early = CurlTimings(
        queue=3_071, dns=58, tcp=39_000, tls=40_000, first_byte=61_000, total=73_000
    )
    seen = sum_timings([a_hop(early)])
    assert (seen.wait, seen.dns, seen.tcp) == (3.071, 0, 35.929)


TIMES = st.builds(
    CurlTimings,
    queue=MOMENTS,
    dns=MOMENTS,
    tcp=MOMENTS,
    tls=MOMENTS,
    first_byte=MOMENTS,
    total=MOMENTS,
)
HOPS = st.builds(
    HopTimings,
    times=TIMES,
    resolves=st.booleans(),
    answered=st.booleans(),
    encrypted=st.booleans(),
    timed_out=st.booleans(),
)


@given(st.lists(HOPS, min_size=1, max_size=4))
def test_phases_of_answers_and_time_outs_add_up_and_none_is_negative(
    hops: list[HopTimings],
) -> None:
    ended = [hop for hop in hops if hop.answered or hop.timed_out]
    seen = sum_timings(ended)
    phases = (seen.wait, seen.dns, seen.tcp, seen.tls, seen.first_byte, seen.download)
    known = [phase for phase in phases if phase is not None]
    assert min(known, default=0) >= 0
    assert sum(known) == pytest.approx(seen.total or 0)


HUNG = {
    "dns": (CurlTimings(queue=1000, dns=0, tcp=0, tls=0, first_byte=0, total=9000), False),
    "tcp": (CurlTimings(queue=1000, dns=2000, tcp=0, tls=0, first_byte=0, total=9000), False),
    "tls": (CurlTimings(queue=1000, dns=2000, tcp=3000, tls=0, first_byte=0, total=9000), False),
    "first_byte": (CurlTimings(1000, 2000, 3000, 4000, 4500, total=9000), False),
    "download": (CurlTimings(1000, 2000, 3000, 4000, 5000, total=9000), True),
}


@pytest.mark.parametrize("phase", HUNG)
def test_the_phase_in_which_time_ran_out_has_the_rest_of_it(phase: str) -> None:
    times, answered = HUNG[phase]
    hop = HopTimings(times, resolves=True, answered=answered, encrypted=True, timed_out=True)
    assert find_hung_phase(hop) == phase
    order = list(HUNG)
    before = order.index(phase)
    seen = sum_timings([hop])
    lengths = [getattr(seen, name) for name in order]
    assert lengths == [*[1] * before, 8 - before, *[None] * (len(order) - before - 1)]


def test_a_phase_that_failed_before_its_time_was_up_has_none() -> None:
    refused = CurlTimings(queue=1, dns=2, tcp=0, tls=0, first_byte=0, total=9)
    assert sum_timings([HopTimings(refused, resolves=True, answered=False)]).tcp is None
