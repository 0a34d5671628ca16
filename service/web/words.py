"""Times, durations, numbers and messages as people read them."""

import math
import re
from datetime import UTC, datetime
from typing import Final

from contract.assertions import Source

NOTHING: Final = "\N{EN DASH}"
"""What stands where there is no value."""
_SIZES: Final = ("B", "kB", "MB", "GB")
_EXPECTED: Final = re.compile(r"(Expected|Received|Error)[^:]*:(.*)")
_MOST_IN_MESSAGE: Final = 300
_SUBJECT: Final = re.compile(
    rf"\b({'|'.join(Source)})(?= (?:`|\$|[\w-]+ should|should |cannot |is nested ))"
)
"""The subject of a failed assertion's sentence, as the API names it."""
_ACRONYMS: Final = frozenset({"JSON", "TLS"})
_S: Final = 1000
_MIN: Final = 60 * _S
_H: Final = 60 * _MIN
_DAY: Final = 24 * _H


def format_duration(ms: float | None) -> str:
    """A duration: `<1 ms`, `412 ms`, `3.8 s`, `2 min 10 s`, `3 h 5 min`; a dash for None."""
    if ms is None:
        return NOTHING
    if ms < 1:
        return "0 ms" if ms <= 0 else "<1 ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 9_950:
        return f"{ms / _S:.1f} s"
    if ms < 59_500:
        return f"{ms / _S:.0f} s"
    return _format_long(round(ms / _S) * _S)


def _format_long(ms: int) -> str:
    if ms < _H:
        return _pair(ms, (_MIN, "min"), (_S, "s"))
    if ms < _DAY:
        return _pair(ms, (_H, "h"), (_MIN, "min"))
    return _pair(ms, (_DAY, "d"), (_H, "h"))


def _pair(ms: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    whole, rest = divmod(ms, large[0])
    part = rest // small[0]
    return f"{whole} {large[1]}" + (f" {part} {small[1]}" if part else "")


def format_age(age_ms: float) -> str:
    """How long ago something was, in its largest unit: `now`, `40 s`, `12 min`, `3 h`, `5 d`."""
    for unit_ms, name in ((_DAY, "d"), (_H, "h"), (_MIN, "min"), (_S, "s")):
        if age_ms >= unit_ms:
            return f"{age_ms // unit_ms:.0f} {name}"
    return "now"


def format_moment(at_ms: int) -> str:
    """A time to the second: `2026-11-27 03:00:12 UTC`."""
    return f"{_datetime(at_ms):%Y-%m-%d %H:%M:%S} UTC"


def format_clock(at_ms: int, *, now_ms: int) -> str:
    """A time in UTC as lists show it, without the date if that is today's: `03:00:12`."""
    at = _datetime(at_ms)
    is_today = at.date() == _datetime(now_ms).date()
    return f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}"


def format_iso(at_ms: int) -> str:
    """A time as programs read it, as in `<time datetime>`."""
    return f"{_datetime(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def format_count(number: int) -> str:
    """A number in groups of three: `14,203`."""
    return f"{number:,}"


def format_percent(ratio: float | None) -> str:
    """A share of 0 to 1: `100 %`, `99.98 %`, `99.1 %`, `42 %`; a dash for None.

    What was not always well is never rounded up to 100 %.
    """
    if ratio is None:
        return NOTHING
    hundredths = math.floor(ratio * 10_000 + 0.5)
    if ratio < 1:
        hundredths = min(hundredths, 9_999)
    if hundredths % 100 == 0:
        return f"{hundredths // 100} %"
    text = f"{hundredths / 100:.2f}".rstrip("0")
    return f"{text} %"


def format_bytes(number: int | None) -> str:
    """A size: `512 B`, `1.4 kB`, `12 MB`; a dash for None."""
    if number is None:
        return NOTHING
    if number < 1000:
        return f"{number} B"
    power = min(int(math.log10(number)) // 3, len(_SIZES) - 1)
    size = number / 1000**power
    return f"{size:.1f} {_SIZES[power]}" if size < 9.95 else f"{size:.0f} {_SIZES[power]}"


def format_plural(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 run`, `14,203 runs`."""
    return f"{format_count(number)} {one if number == 1 else many or one + 's'}"


def name_source(source: Source) -> str:
    """What an assertion tests, in words: `STATUS_CODE` is `Status code`."""
    words = [word if word in _ACRONYMS else word.lower() for word in source.split("_")]
    text = " ".join(words)
    return text[0].upper() + text[1:]


def name_sources(message: str) -> str:
    """The sentence of a failed assertion with its subject in words."""
    return _SUBJECT.sub(_name_subject, message, count=1)


def _name_subject(found: re.Match[str]) -> str:
    name = name_source(Source(found[1]))
    is_first = found.start() == 0 or name.split()[0] in _ACRONYMS
    return name if is_first else name[0].lower() + name[1:]


def shorten_message(message: str) -> str:
    """A message on one line, in words: what failed; of Playwright also expected and received."""
    message = name_sources(message)
    first, *others = [line.strip() for line in message.strip().splitlines()] or [""]
    told = [
        f"{found[1].lower()} {found[2].strip()}".removeprefix("error ")
        for line in others
        if (found := _EXPECTED.match(line))
    ]
    whole = first.removeprefix("Error: ") + (f": {', '.join(told[:2])}" if told else "")
    return (
        whole
        if len(whole) <= _MOST_IN_MESSAGE
        else whole[:_MOST_IN_MESSAGE] + "\N{HORIZONTAL ELLIPSIS}"
    )


def _datetime(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / _S, UTC)
