"""Which messages are of one group: what differs from run to run is replaced, the rest is hashed."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

MOST_CHARS: Final = 1_000
"""Messages that are alike up to here are of one group."""
MOST_READ_CHARS: Final = 10_000
"""No more of a message is looked at, its white space included."""
_HASH_CHARS: Final = 32
_CALL_LOG: Final = "Call log:"
"""Playwright tells from here on what it tried, which differs from run to run."""

_KEPT: Final = {
    "placeholder": r"<(?:number|duration|size|time|address|email|id|value|query)>",
    # What an assertion is about; what it expected and found are values.
    "subject": r"\b[A-Z]++(?:_[A-Z]++)* `[^`]*+`(?= should )",
    # A status is a name and no measure: 404 and 503 have different causes.
    "status": r"\bstatus(?: code)?(?: is| of)? \d{3}\b",
    "status_assertion": r"\bSTATUS_CODE should [a-z ]{1,40}\d{3}, but it is \d{3}\b",
}
"""Patterns of what stays as it is, though it looks like what is replaced."""
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}+"
_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[AP]M|[+-]\d{2}:?\d{2})\b)?"
_UNIT: Final = (
    r"(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?|months?)\b"
)
_AMOUNT: Final = rf"\d++(?:\.\d++)? ?{_UNIT}"
_OF_URL: Final = r"[^\s?#\"'`<>]"
_IPV6: Final = r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{0,40}(?:%\w{1,20})?"
_REPLACED: Final = {
    "value": r"`[^`]*+`|\"[^\"]*+\"|'[^']*+'",
    "query": rf"(?P<url>\b[A-Za-z][A-Za-z0-9+.-]{{1,20}}://{_OF_URL}*+)[?#][^\s\"'`<>]++",
    "path_query": rf"(?P<path>/{_OF_URL}*+)\?[\w.%\[\]-]++=[^\s\"'`<>]*+",
    "email": r"[\w.%+-]{1,64}+@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
    "time": (
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK}{_ZONE})?"
        rf"|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}})"
        rf"(?:,? \d{{4}})?(?: {_CLOCK})?(?: \d{{4}})?{_ZONE}"
        rf"|(?<![\w:]){_CLOCK}{_ZONE}(?![\w:])"
    ),
    "address": (
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?![.\w]*\w)(?::\d{1,5}\b)?"
        rf"|\[{_IPV6}\](?::\d{{1,5}}\b)?"
        rf"|(?<![\w:.])(?=[:.]*+[0-9A-Fa-f]){_IPV6}(?<=[\w:])(?![\w:])"
    ),
    "id": (
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
        r"|\b0x[0-9a-fA-F]++\b"
        r"|(?=[a-z0-9+/]*+[A-Z])(?=[A-Z0-9+/]*+[a-z])(?=[A-Za-z+/]*+\d)[A-Za-z0-9+/]{16,}+={1,2}"
    ),
    "duration": rf"\b{_AMOUNT}(?:,? (?:and )?{_AMOUNT})*",
    "size": r"\b\d++(?:\.\d++)? ?(?:bytes?|[kKMGT]i?B|B)\b",
    "number": r"\b\d++(?:[.,]\d++)*(?!\w)",
}
"""Patterns of what differs from run to run, by the word that takes its place; the first fits."""
_WORD: Final = r"\w++(?:[-.']\w++)*"
"""Everything else; names of hosts and files may hold ids."""
_TOKEN: Final = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in (_KEPT | _REPLACED).items())
    + f"|(?P<word>{_WORD})"
)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*+[A-Za-z]")
_PIECE: Final = re.compile(r"[^\W_]++")
_SWITCH: Final = re.compile(r"(?<=[0-9])(?=[^\W\d_])|(?<=[^\W\d_])(?=[0-9])")
_HEX: Final = re.compile(r"(?=[a-fA-F]*+\d)[0-9a-fA-F]{7,}")
_WITH_UNIT: Final = re.compile(r"\d++([^\W\d_]{1,4}+)")
_COUNTED: Final = re.compile(r"([^\W\d_]++)\d{4,}+")
_MOST_SWITCHES: Final = 2
"""Between letters and digits in a word that is no id: `IPv6` has one, `i18n` two."""
_MIN_TOKEN_CHARS: Final = 16


def clean_message(raw: str) -> str:
    """A message without what differs from run to run; cleaning it again changes nothing.

    It goes on until nothing changes: each pass leaves fewer characters outside placeholders, and
    there are at most `MOST_CHARS`.
    """
    before, text = "", _straighten(raw[:MOST_READ_CHARS])
    while text != before:
        before, text = text, _straighten(_TOKEN.sub(_replace, text))
    return text


def hash_message(cleaned: str) -> str:
    """The hash by which groups of a check are distinguished."""
    return hashlib.sha256(cleaned.encode(errors="replace")).hexdigest()[:_HASH_CHARS]


def _straighten(text: str) -> str:
    """In one line, without colours, up to the call log and not too long."""
    line = " ".join(_COLOURS.sub("", text).split()).partition(_CALL_LOG)[0]
    return line[:MOST_CHARS].strip()


def _replace(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    act = _ACTS.get(kind)
    if act is not None:
        return act(found)
    return f"<{kind}>" if kind in _REPLACED else found[0]


def _clean_word(found: re.Match[str]) -> str:
    word = found[0]
    if word.isalpha():
        return word
    return ".".join(map(_clean_name, word.split(".")))


def _clean_name(name: str) -> str:
    """A word without dots; base64url has hyphens and underscores in one token."""
    if len(name) >= _MIN_TOKEN_CHARS and _is_mixed(name) and _has_many_switches(name):
        return "<id>"
    return _PIECE.sub(lambda piece: _clean_piece(piece[0]), name)


def _is_mixed(name: str) -> bool:
    return not (name.islower() or name.isupper()) and any(map(str.isdigit, name))


def _has_many_switches(text: str) -> bool:
    return len(_SWITCH.findall(text)) > _MOST_SWITCHES


def _clean_piece(piece: str) -> str:
    if piece.isalpha():
        return piece
    if piece.isdigit():
        return "<number>"
    if _HEX.fullmatch(piece) or _has_many_switches(piece):
        return "<id>"
    if with_unit := _WITH_UNIT.fullmatch(piece):
        return f"<number>{with_unit[1]}"
    if counted := _COUNTED.fullmatch(piece):
        return f"{counted[1]}<number>"
    return piece


_ACTS: Final[Mapping[str, Callable[[re.Match[str]], str]]] = {
    "query": lambda found: f"{found['url']}?<query>",
    "path_query": lambda found: f"{found['path']}?<query>",
    "word": _clean_word,
}
