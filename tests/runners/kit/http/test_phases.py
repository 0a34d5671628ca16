from hypothesis import given
from hypothesis import strategies as st

from runners.kit.http.phases import Lap, timings
from runners.kit.http.transfer import Ticks

MOMENTS = st.integers(min_value=0, max_value=30_000_000)


def a_lap(ticks: Ticks, *, resolves: bool = True) -> Lap:
    return Lap(ticks=ticks, resolves=resolves, answered=True)


def test_a_lookup_whose_clock_ran_before_its_turn_came_took_no_time() -> None:
    """Of QUIC's, on a busy machine."""
    early = Ticks(queue=3_071, dns=58, tcp=39_000, tls=40_000, first_byte=61_000, total=73_000)
    seen = timings([a_lap(early)])
    assert (seen.wait, seen.dns, seen.tcp) == (3.071, 0, 35.929)


@given(
    st.builds(
        Ticks,
        queue=MOMENTS,
        dns=MOMENTS,
        tcp=MOMENTS,
        tls=MOMENTS,
        first_byte=MOMENTS,
        total=MOMENTS,
    ),
    st.booleans(),
)
def test_no_phase_took_less_than_no_time(ticks: Ticks, resolves: bool) -> None:  # noqa: FBT001
    seen = timings([a_lap(ticks, resolves=resolves)])
    phases = [seen.wait, seen.dns, seen.tcp, seen.tls, seen.first_byte, seen.download]
    assert min(phase for phase in phases if phase is not None) >= 0
