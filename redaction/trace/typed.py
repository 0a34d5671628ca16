"""Finds secrets that were typed into a page key by key."""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import msgspec

from redaction.compiled import compile_re2
from redaction.policy import HIDDEN

START: Final = 0
"""The automaton's root."""


class Automaton:
    """An Aho-Corasick automaton: finds many words in one pass over a text."""

    def __init__(self, words: Iterable[str]) -> None:
        self._goto: list[dict[str, int]] = [{}]
        self._failure = [START]
        """The failure link of each node."""
        self._depth = [0]
        self._output = [0]
        """The length of the longest word that ends at each node; 0: none."""
        self.longest = 0
        for word in words:
            self._add(word)
        self._link()

    def read(self, node: int, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield each character's node, its depth, and the length of the word that ends there."""
        for char in text:
            while node and char not in self._goto[node]:
                node = self._failure[node]
            node = self._goto[node].get(char, START)
            yield node, self._depth[node], self._output[node]

    def node_after(self, text: str) -> int:
        """The node after a text."""
        node = START
        for one in self.read(START, text[-self.longest :] if self.longest else ""):
            node = one[0]
        return node

    def _add(self, word: str) -> None:
        node = START
        for depth, char in enumerate(word, start=1):
            following = self._goto[node].get(char)
            if following is None:
                following = self._goto[node][char] = len(self._goto)
                self._goto.append({})
                self._failure.append(START)
                self._depth.append(depth)
                self._output.append(0)
            node = following
        self._output[node] = len(word)
        self.longest = max(self.longest, len(word))

    def _link(self) -> None:
        """Set the failure links breadth first, since deeper ones depend on them."""
        coming = deque(self._goto[START].values())
        while coming:
            node = coming.popleft()
            self._output[node] = self._output[node] or self._output[self._failure[node]]
            for char, following in self._goto[node].items():
                coming.append(following)
                failure = self._failure[node]
                while failure and char not in self._goto[failure]:
                    failure = self._failure[failure]
                self._failure[following] = self._goto[failure].get(char, START)


_HEAD_BYTES: Final = 600
"""How many bytes of a trace line are read to find its event type."""
_LONGEST_BYTES: Final = 16_384
LONGEST_SECRET_CHARS: Final = 8192
"""Longer secrets are not typed, nor printed in parts."""
_TOGETHER_CHARS: Final = 256
"""Words up to this length go into the automaton, where a thousand cost no more than one."""
MOST_OF_CALL: Final = 64
"""How many distinct texts of one call are hidden; a call with more is removed."""
_HIDDEN: Final = HIDDEN.encode()
_CALL: Final = re.compile(rb'"callId":"([^"]+)"')
_HOLDING: Final = re.compile(
    rb'"method":"keyboardDown"|"title":"(?:Key down|keyboard\.down)|"apiName":"keyboard\.down"'
)
_KEY: Final = b'"key"'
_SHIFTS: Final = frozenset({"Shift", "ShiftLeft", "ShiftRight"})
_FIELD: Final = r'"(?:key|text|data)":"((?:[^"\\]|\\.)*)"'
_BOX: Final = (
    r'"(?:__playwright_value_|value)":"('
    r'[^"\\\x80-\xff]|[\xc2-\xf4][\x80-\xbf]+|\\u[0-9a-fA-F]{4}|\\["\\/])"'
)
"""A one-letter field of a page, as used for codes."""
_BOX_GROUP: Final = 2


_PIECES: Final = compile_re2(f"{_FIELD}|{_BOX}".encode("latin-1"))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of a text that one event adds."""

    text: str
    raw: bytes
    """The text as it is encoded in the line."""
    line: bytes
    """The digest of the line."""
    call: bytes | None
    """The call that typed it. None: it was not typed."""


class _Line:
    """The trace line that a text is in."""

    def __init__(self, block: bytes, at: int) -> None:
        start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
        self._whole = memoryview(block)[start : end if end >= 0 else len(block)]
        head = bytes(self._whole[: min(_HEAD_BYTES, at - start)])
        self.by = text_source(head)
        """What the text is part of, such as the keyboard. None: nothing."""
        call = _CALL.search(head)
        self.call = None if call is None else call[1]
        self.holds = self.by == TYPED[0] and _HOLDING.search(head) is not None
        """Whether the event holds a key down."""

    @cached_property
    def digest(self) -> bytes:
        """Identifies the line when it is rewritten."""
        return digest(self._whole)


@dataclass(slots=True)
class _Text:
    """A text that grows piece by piece."""

    pieces: deque[_Piece] = field(default_factory=deque)
    joined: str = ""
    node: int = START
    """The automaton's node after the text."""

    def add(self, piece: _Piece) -> None:
        """Append a piece, which may be empty."""
        if piece.text:
            self.pieces.append(piece)
            self.joined += piece.text

    def drop_last(self) -> None:
        """Delete the last letter."""
        if self.pieces:
            last = self.pieces.pop()
            self.joined = self.joined[:-1]
            if len(last.text) > 1:
                self.pieces.append(replace(last, text=last.text[:-1]))

    def pieces_within(self, begins: int, ends: int) -> Iterator[_Piece]:
        """Yield the pieces that overlap the range."""
        at = 0
        for piece in self.pieces:
            if at < ends and at + len(piece.text) > begins:
                yield piece
            at += len(piece.text)

    def shorten(self, least_chars: int) -> None:
        """Drop the first pieces, but keep at least so many characters."""
        gone = 0
        while self.pieces and len(self.joined) - gone - len(self.pieces[0].text) >= least_chars:
            gone += len(self.pieces.popleft().text)
        self.joined = self.joined[gone:]


@dataclass(frozen=True, slots=True)
class TypedSecrets:
    """The calls and lines of one member that together spell secrets."""

    calls: dict[bytes, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """The encoded texts that each call typed."""
    lines: set[bytes] = field(default_factory=set)
    """Digests of lines whose text is hidden."""
    boxes: set[bytes] = field(default_factory=set)
    """Digests of lines with one-letter fields; one of them hides all such fields."""
    secrets: set[str] = field(default_factory=set)
    """Secrets that were typed."""


class TypedWords:
    """The words that events may spell, compiled once for thousands of members."""

    def __init__(self, secrets: Iterable[str]) -> None:
        every = tuple(one for one in secrets if len(one) <= LONGEST_SECRET_CHARS)
        self.longest = max(map(len, every), default=0)
        """The longest word's length; 0: there is none."""
        self.long = tuple(one for one in every if len(one) > _TOGETHER_CHARS)
        self.short = Automaton(one for one in every if len(one) <= _TOGETHER_CHARS)


class TypedTextReader:
    """Reads one member of a trace and finds secrets that several events spell."""

    def __init__(self, words: TypedWords) -> None:
        self._longest, self._long, self._short = words.longest, words.long, words.short
        self._texts: dict[bytes, _Text] = defaultdict(_Text)
        """The texts so far, by their source, at most as long as the longest secret."""
        self._is_shifted = False
        self.found = TypedSecrets()

    def read(self, block: bytes) -> None:
        """Read the next lines."""
        line, last = None, 0
        for match in _PIECES.finditer(block) if self._longest else ():
            begins, ends = match.span(match.lastindex or 0)  # each has one group
            # Only what is new is looked through: a line may be long, and full of texts.
            if line is None or block.find(b"\n", last, begins) >= 0:
                line = _Line(block, begins)
            last = begins
            is_box = match.lastindex == _BOX_GROUP
            if (
                line.by is not None
                and is_box == (line.by in OF_BOXES)
                and ends - begins < _LONGEST_BYTES
            ):
                is_key = block.startswith(_KEY, match.start())
                self._take(line, block[begins:ends], is_key=is_key)

    def _take(self, line: _Line, raw: bytes, *, is_key: bool) -> None:
        by, text = line.by or b"", _text(raw)
        call = line.call if by in TYPED else None
        if call is None:
            text = text.rstrip("\n")
        elif is_key:
            self._note_shift(line, text)
            text = letter_of(text, is_shifted=self._is_shifted)
        if call is not None and text == BACKSPACE:
            self._texts[by].drop_last()
            self._texts[by].node = self._short.node_after(self._texts[by].joined)
        else:
            self._add(by, _Piece(text, raw, line.digest, call))

    def _note_shift(self, line: _Line, key: str) -> None:
        if key in _SHIFTS and (line.holds or line.by == TYPED[1]):
            self._is_shifted = line.holds

    def _add(self, by: bytes, piece: _Piece) -> None:
        text = self._texts[by]
        since = len(text.joined)
        text.add(piece)
        for begins, ends in (*self._find_ended(text, since), *self._find_long(text, since)):
            for one in text.pieces_within(begins, ends):
                self._mark(one, text.joined[begins:ends])
                self.found.boxes.update((one.line,) if by in OF_BOXES else ())
        text.shorten(self._longest)

    def _find_ended(self, text: _Text, since: int) -> Iterator[tuple[int, int]]:
        """Yield where secrets are that began in an earlier piece and reach the last."""
        new = text.joined[since:]
        reading, longest = self._short.read(text.node, new), (0, 0)
        for ends, (node, depth, found) in enumerate(reading, start=since + 1):
            text.node = node
            if ends - depth >= since:  # what comes next can only begin in this piece
                text.node = self._short.node_after(new) if new[ends - since :] else node
                break
            if found and ends - found < since:
                if longest[0] != ends - found:
                    yield longest
                longest = (ends - found, ends)
        yield longest

    def _find_long(self, text: _Text, since: int) -> Iterator[tuple[int, int]]:
        """Yield where long secrets are that began in an earlier piece."""
        for secret in self._long if since else ():
            at = text.joined.find(secret, max(0, since - len(secret) + 1))
            if 0 <= at < since:
                yield at, at + len(secret)

    def _mark(self, piece: _Piece, secret: str) -> None:
        if piece.call is None:
            self.found.lines.add(piece.line)
            return
        self.found.calls[piece.call].add(piece.raw)
        self.found.secrets.add(secret)


def hide_typed(block: bytes, typed_secrets: TypedSecrets) -> tuple[bytes, int]:
    """Hide what spells secrets; the lines and how many changed."""
    if not typed_secrets.calls and not typed_secrets.lines:
        return block, 0
    lines, count = block.split(b"\n"), 0
    for at, line in enumerate(lines):
        changed = _hide_in_line(line, typed_secrets)
        count += changed is not line
        lines[at] = changed
    return (b"\n".join(lines), count) if count else (block, 0)


def digest(line: bytes | memoryview) -> bytes:
    """A digest that identifies a line."""
    return hashlib.blake2b(line, digest_size=16).digest()


def _hide_in_line(line: bytes, typed_secrets: TypedSecrets) -> bytes:
    call = _CALL.search(line[:_HEAD_BYTES]) if typed_secrets.calls else None
    if call is not None and call[1] in typed_secrets.calls and b'"frame-snapshot"' not in line[:40]:
        if len(typed_secrets.calls[call[1]]) > MOST_OF_CALL:
            return b"{}"
        for raw in typed_secrets.calls[call[1]]:
            line = _hide_keys(line, raw)
        return line
    if typed_secrets.boxes and text_source(line[:_HEAD_BYTES]) == BOXES:
        return re.sub(_BOX.encode("latin-1"), _hide_text, line)
    if typed_secrets.lines and digest(line) in typed_secrets.lines:
        return re.sub(_FIELD.encode(), _hide_text, line)
    return line


def _hide_keys(line: bytes, raw: bytes) -> bytes:
    for opens, closes in ((b':"', b'"'), (rb"\"", rb"\""), (b"('", b"')"), (rb"(\"", rb"\")")):
        line = line.replace(opens + raw + closes, opens + _HIDDEN + closes)
    return line


def _hide_text(match: re.Match[bytes]) -> bytes:
    return match[0][: match.start(1) - match.start()] + _HIDDEN + b'"'


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(b'"' + raw + b'"', type=str)
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")


_TYPE: Final = re.compile(rb'"type":"([\w-]+)"')
_TYPING: Final = re.compile(
    rb'"method":"(?:press|type|keyboardPress|keyboardDown|keyboardInsertText|keyboardType)"'
    rb'|"method":"pw:api"[^\n]*"title":"(?:Press|Insert|Type|Key down|keyboard\.|locator\.press)'
    rb'|"apiName":"(?:keyboard\.|\w+\.press)'
)
_RELEASING: Final = re.compile(rb'"method":"keyboardUp"|"title":"Key up|"title":"keyboard\.up')
_FRAME: Final = re.compile(rb'"method":"(frameSent|frameReceived)"')
_FILLING: Final = re.compile(rb'"method":"fill"|"title":"Fill |"apiName":"\w+\.fill"')
_OUTPUTS: Final = frozenset({b"stdout", b"stderr", b"console", b"send", b"receive"})
TYPED: Final = (b"typed", b"released", b"filled")
"""Sources whose texts belong to calls; those of others belong to lines."""
BOXES: Final = b"boxes"
OF_BOXES: Final = (BOXES, b"filled")
"""Sources that are one-letter fields."""


def text_source(head: bytes) -> bytes | None:
    """The source that the line's text is part of. None: no text to join."""
    kind = _TYPE.search(head)
    if kind is None:
        return None
    if kind[1] == b"before":
        ways = ((_RELEASING, b"released"), (_TYPING, b"typed"), (_FILLING, b"filled"))
        return next((name for way, name in ways if way.search(head)), None)
    if kind[1] == b"event":
        frame = _FRAME.search(head)
        return None if frame is None else frame[1]
    if kind[1] == b"frame-snapshot":
        return BOXES
    return kind[1] if kind[1] in _OUTPUTS else None


BACKSPACE: Final = "\b"
_SIGNS: Final = {
    "Backquote": "`~",
    "Minus": "-_",
    "Equal": "=+",
    "BracketLeft": "[{",
    "BracketRight": "]}",
    "Backslash": "\\|",
    "Semicolon": ";:",
    "Quote": "'\"",
    "Comma": ",<",
    "Period": ".>",
    "Slash": "/?",
    "Space": "  ",
    "Enter": "\n\n",
    "NumpadEnter": "\n\n",
    "NumpadAdd": "++",
    "NumpadSubtract": "--",
    "NumpadMultiply": "**",
    "NumpadDivide": "//",
    "Backspace": BACKSPACE * 2,
}
"""What each key code types, without Shift and with it."""
_ABOVE_DIGITS: Final = ")!@#$%^&*("
_CODE: Final = re.compile(r"Key([A-Z])|Digit([0-9])|Numpad([0-9]|Decimal)")
_OTHER_MODIFIERS: Final = ("Control+", "Alt+", "Meta+", "ControlOrMeta+")


def letter_of(key: str, *, is_shifted: bool) -> str:
    """The letter that a key types, or `BACKSPACE`; empty if neither.

    `is_shifted`: whether Shift is held, besides the modifiers in the key's name.
    """
    if len(key) == 1:
        return key
    held, plus, name = key.rpartition("+")
    if any(one in held + plus for one in _OTHER_MODIFIERS):
        return ""
    return _type_named(name or plus, is_shifted=is_shifted or "Shift" in held)


def _type_named(name: str, *, is_shifted: bool) -> str:
    if len(name) == 1:
        return name
    if name == "Tab":
        return "" if is_shifted else "\t"
    code = _CODE.fullmatch(name)
    if code is None:
        return _SIGNS[name][is_shifted] if name in _SIGNS else ""
    letter, digit, keypad = code.groups()
    if letter is not None:
        return str(letter) if is_shifted else str(letter).lower()
    if digit is not None:
        return _ABOVE_DIGITS[int(digit)] if is_shifted else str(digit)
    return str(keypad).replace("Decimal", ".") if is_shifted else ""
