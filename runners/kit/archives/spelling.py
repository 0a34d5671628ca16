"""Secrets that a trace holds letter by letter: typed key for key, printed or received in parts."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import msgspec
import re2

from runners.kit.sensitive import HIDDEN

_HEAD_BYTES: Final = 600
"""Of a line, in which its type stands."""
_LONGEST_BYTES: Final = 16_384
_HIDDEN: Final = HIDDEN.encode()
_TYPE: Final = re.compile(rb'"type":"([\w-]+)"')
_CALL: Final = re.compile(rb'"callId":"([^"]+)"')
_TYPING: Final = re.compile(
    rb'"method":"(?:press|type|keyboardPress|keyboardDown|keyboardInsertText|keyboardType)"'
    rb'|"method":"pw:api"[^\n]*"title":"(?:Press|Insert|Type|Key down|keyboard\.|locator\.press)'
    rb'|"apiName":"(?:keyboard\.|\w+\.press)'
)
_RELEASING: Final = re.compile(rb'"method":"keyboardUp"|"title":"Key up|"title":"keyboard\.up')
_FRAME: Final = re.compile(rb'"method":"(frameSent|frameReceived)"')
_TYPED: Final = (b"typed", b"released")
_OUTPUTS: Final = frozenset({b"stdout", b"stderr", b"console", b"send", b"receive"})
_NAMED_KEYS: Final = {"Space": " ", "Enter": "\n", "Tab": "\t", "Minus": "-", "Period": "."}
_KEY_CODE: Final = re.compile(r"(?:Key|Digit|Numpad)([A-Z0-9])")
_FIELD: Final = r'"(?:key|text|data)":"((?:[^"\\]|\\.)*)"'


def _compile(source: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(source.encode("latin-1"), options)


_PIECES: Final = _compile(_FIELD)


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one event adds to a text."""

    text: str
    raw: bytes
    """As it stands in the line."""
    line: bytes
    """The digest of its line."""
    call: bytes | None
    """The call that typed it. None: it was not typed."""


class _Line:
    """The line that a text stands in."""

    def __init__(self, block: bytes, at: int) -> None:
        start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
        self._whole = memoryview(block)[start : end if end >= 0 else len(block)]
        head = bytes(self._whole[: min(_HEAD_BYTES, at - start)])
        self.by = _speller(head)
        """What spells with it. None: nothing."""
        call = _CALL.search(head)
        self.call = None if call is None else call[1]

    @cached_property
    def digest(self) -> bytes:
        """By which it is known again."""
        return digest(self._whole)


@dataclass(frozen=True, slots=True)
class Spelled:
    """What of one member of a trace spells secrets."""

    calls: dict[bytes, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """By call, what it typed as that is written."""
    lines: set[bytes] = field(default_factory=set)
    """Digests of lines whose text goes."""
    secrets: set[str] = field(default_factory=set)
    """Those that were typed."""


class Spelling:
    """Reads one member of a trace from its beginning to its end."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)
        self._longest = max(map(len, self._secrets), default=0)
        self._texts: dict[bytes, list[_Piece]] = defaultdict(list)
        """What is spelled as yet, by what spells it; no more than a secret is long."""
        self.found = Spelled()

    def read(self, block: bytes) -> None:
        """Go on with some lines."""
        line, last = None, 0
        for match in _PIECES.finditer(block) if self._secrets else ():
            begins, ends = match.start(1), match.end(1)
            # Only what is new is looked through: a line may be long, and full of texts.
            if line is None or block.find(b"\n", last, begins) >= 0:
                line = _Line(block, begins)
            last = begins
            if line.by is not None and ends - begins < _LONGEST_BYTES:
                self._take(line, block[begins:ends])

    def _take(self, line: _Line, raw: bytes) -> None:
        call = line.call if line.by in _TYPED else None
        text = _text(raw).rstrip("\n") if call is None else _letters(raw)
        self._add(line.by or b"", _Piece(text, raw, line.digest, call))

    def _add(self, by: bytes, piece: _Piece) -> None:
        pieces = self._texts[by]
        pieces.append(piece)
        joined = "".join(one.text for one in pieces)
        if len(pieces) > 1:
            for secret in self._secrets:
                self._look_for(secret, pieces, joined, since=len(joined) - len(piece.text))
        while pieces and len(joined) - len(pieces[0].text) >= self._longest:
            joined = joined[len(pieces.pop(0).text) :]

    def _look_for(self, secret: str, pieces: list[_Piece], joined: str, *, since: int) -> None:
        at = joined.find(secret, max(0, since - len(secret) + 1))
        if not 0 <= at < since:
            return
        starts = [0]
        for piece in pieces:
            starts.append(starts[-1] + len(piece.text))
        for piece, (begins, ends) in zip(pieces, pairwise(starts), strict=True):
            if begins < at + len(secret) and ends > at:
                self._mark(piece, secret)

    def _mark(self, piece: _Piece, secret: str) -> None:
        if piece.call is None:
            self.found.lines.add(piece.line)
            return
        self.found.calls[piece.call].add(piece.raw)
        self.found.secrets.add(secret)


def hide_spelled(block: bytes, spelled: Spelled) -> tuple[bytes, int]:
    """The lines without what spells secrets, and how many lines that were."""
    if not spelled.calls and not spelled.lines:
        return block, 0
    lines, count = block.split(b"\n"), 0
    for at, line in enumerate(lines):
        changed = _without(line, spelled)
        count += changed is not line
        lines[at] = changed
    return (b"\n".join(lines), count) if count else (block, 0)


def digest(line: bytes | memoryview) -> bytes:
    """By which a line is known again."""
    return hashlib.blake2b(line, digest_size=16).digest()


def _without(line: bytes, spelled: Spelled) -> bytes:
    call = _CALL.search(line[:_HEAD_BYTES]) if spelled.calls else None
    if call is not None and call[1] in spelled.calls and b'"frame-snapshot"' not in line[:40]:
        for raw in spelled.calls[call[1]]:
            line = _without_keys(line, raw)
        return line
    if spelled.lines and digest(line) in spelled.lines:
        return re.sub(_FIELD.encode(), _without_text, line)
    return line


def _without_keys(line: bytes, raw: bytes) -> bytes:
    for opens, closes in ((b':"', b'"'), (rb"\"", rb"\""), (b"('", b"')"), (rb"(\"", rb"\")")):
        line = line.replace(opens + raw + closes, opens + _HIDDEN + closes)
    return line


def _without_text(match: re.Match[bytes]) -> bytes:
    return match[0][: match.start(1) - match.start()] + _HIDDEN + b'"'


def _speller(head: bytes) -> bytes | None:
    """What spells with this line. None: nothing."""
    kind = _TYPE.search(head)
    if kind is None:
        return None
    if kind[1] == b"before":
        if _RELEASING.search(head):
            return b"released"
        return b"typed" if _TYPING.search(head) else None
    if kind[1] == b"event":
        frame = _FRAME.search(head)
        return None if frame is None else frame[1]
    return kind[1] if kind[1] in _OUTPUTS else None


def _letters(raw: bytes) -> str:
    """What a key types."""
    text = _text(raw)
    if len(text) < 2:
        return text
    name = text.rpartition("+")[2] if text.startswith(("Shift+", "Alt", "Control")) else text
    if code := _KEY_CODE.fullmatch(name):
        return code[1] if "Shift+" in text else code[1].lower()
    return _NAMED_KEYS.get(name, name)


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(b'"' + raw + b'"', type=str)
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")
