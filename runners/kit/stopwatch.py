"""How long something took."""

import time


def ms_since(began_s: float) -> float:
    """Milliseconds since a reading of `time.perf_counter()`, whole microseconds."""
    return in_ms(time.perf_counter() - began_s)


def in_ms(span_s: float) -> float:
    """The span in milliseconds; what is below a microsecond is noise to its reader."""
    return round(span_s * 1000, 3)
