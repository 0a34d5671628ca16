from hypothesis import given
from hypothesis import strategies as st

from runners.net.http.exchange import HopTimings, sum_timings
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


@given(
    st.builds(
        CurlTimings,
        queue=MOMENTS,
        dns=MOMENTS,
        tcp=MOMENTS,
        tls=MOMENTS,
        first_byte=MOMENTS,
        total=MOMENTS,
    ),
    st.booleans(),
)
def test_no_phase_took_less_than_no_time(times: CurlTimings, resolves: bool) -> None:  # noqa: FBT001
    seen = sum_timings([a_hop(times, resolves=resolves)])
    phases = [seen.wait, seen.dns, seen.tcp, seen.tls, seen.first_byte, seen.download]
    assert min(phase for phase in phases if phase is not None) >= 0
