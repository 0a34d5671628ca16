"""Spans of time as sentences say them. Pure."""

from typing import Final


def milliseconds(value: float) -> str:
    """A number of milliseconds, whole or with one digit, as in `1.5`."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def duration(seconds: float) -> str:
    """A span of time in its two largest units, as in `2 h 5 min`."""
    left, parts = round(seconds), []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"


_WHOLE_SECONDS_FROM_S: Final = 10


def stopped_early(after_s: float, limit_s: float) -> str:
    """How something ended that was stopped shortly before its limit."""
    after = time_limit(round(after_s, None if after_s >= _WHOLE_SECONDS_FROM_S else 1))
    return f"was stopped after {after} to keep its files within its limit of {time_limit(limit_s)}"


def time_limit(seconds: float) -> str:
    """A limit as somebody set it, as in `10 s`, `2.5 s` or `4 min`."""
    return duration(seconds) if seconds == round(seconds) else f"{round(seconds, 3):g} s"
