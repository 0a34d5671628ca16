"""Finds secrets that were typed into a page key by key."""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import msgspec
import re2

from redaction.policy import HIDDEN

START: Final = 0
"""Where a text is read from."""


class Automaton:
    """Knows after each character how much of a word was read, and which word ends there."""

    def __init__(self, words: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._back = [START]
        """By node, that of the longest end of what was read with which a word begins too."""
        self._depth = [0]
        self._found = [0]
        """By node, how long the longest word is that ends there; 0: none does."""
        self.longest = 0
        for word in words:
            self._add(word)
        self._link()

    def read(self, node: int, text: str) -> Iterator[tuple[int, int, int]]:
        """After each character the node, how much of a word that is, and how much of it is one."""
        for char in text:
            while node and char not in self._next[node]:
                node = self._back[node]
            node = self._next[node].get(char, START)
            yield node, self._depth[node], self._found[node]

    def node_after(self, text: str) -> int:
        """Where one is once a text was read."""
        node = START
        for one in self.read(START, text[-self.longest :] if self.longest else ""):
            node = one[0]
        return node

    def _add(self, word: str) -> None:
        node = START
        for depth, char in enumerate(word, start=1):
            following = self._next[node].get(char)
            if following is None:
                following = self._next[node][char] = len(self._next)
                self._next.append({})
                self._back.append(START)
                self._depth.append(depth)
                self._found.append(0)
            node = following
        self._found[node] = len(word)
        self.longest = max(self.longest, len(word))

    def _link(self) -> None:
        """The nearer nodes first, since those further away lean on them."""
        coming = deque(self._next[START].values())
        while coming:
            node = coming.popleft()
            self._found[node] = self._found[node] or self._found[self._back[node]]
            for char, following in self._next[node].items():
                coming.append(following)
                back = self._back[node]
                while back and char not in self._next[back]:
                    back = self._back[back]
                self._back[following] = self._next[back].get(char, START)


_HEAD_BYTES: Final = 600
"""Of a line, in which its type stands."""
_LONGEST_BYTES: Final = 16_384
LONGEST_SECRET_CHARS: Final = 8192
"""Nobody types longer ones, and no output has them in parts but by will."""
_TOGETHER_CHARS: Final = 256
"""Up to this length all are looked for at once, of which a thousand beginnings are no more work."""
MOST_OF_CALL: Final = 64
"""So many different things are typed by no call; of one that says so nothing is left."""
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
"""A field of a page with a single letter in it, as pages have them for codes."""
_BOX_GROUP: Final = 2


def _compile(source: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(source.encode("latin-1"), options)


_PIECES: Final = _compile(f"{_FIELD}|{_BOX}")


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
        self.by = speller(head)
        """What spells with it. None: nothing."""
        call = _CALL.search(head)
        self.call = None if call is None else call[1]
        self.holds = self.by == TYPED[0] and _HOLDING.search(head) is not None
        """Whether a key is pressed and not released."""

    @cached_property
    def digest(self) -> bytes:
        """By which it is known again."""
        return digest(self._whole)


@dataclass(slots=True)
class _Text:
    """What pieces spell together."""

    pieces: deque[_Piece] = field(default_factory=deque)
    joined: str = ""
    node: int = START
    """How much of a secret it ends with."""

    def add(self, piece: _Piece) -> None:
        """One more, which may be empty."""
        if piece.text:
            self.pieces.append(piece)
            self.joined += piece.text

    def drop_last(self) -> None:
        """Forget the last letter."""
        if self.pieces:
            last = self.pieces.pop()
            self.joined = self.joined[:-1]
            if len(last.text) > 1:
                self.pieces.append(replace(last, text=last.text[:-1]))

    def pieces_within(self, begins: int, ends: int) -> Iterator[_Piece]:
        """Those of which something stands there."""
        at = 0
        for piece in self.pieces:
            if at < ends and at + len(piece.text) > begins:
                yield piece
            at += len(piece.text)

    def shorten(self, least_chars: int) -> None:
        """Forget what came first, but for so much."""
        gone = 0
        while self.pieces and len(self.joined) - gone - len(self.pieces[0].text) >= least_chars:
            gone += len(self.pieces.popleft().text)
        self.joined = self.joined[gone:]


@dataclass(frozen=True, slots=True)
class Spelled:
    """What of one member of a trace spells secrets."""

    calls: dict[bytes, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """By call, what it typed as that is written."""
    lines: set[bytes] = field(default_factory=set)
    """Digests of lines whose text goes."""
    boxes: set[bytes] = field(default_factory=set)
    """Of these, those with fields of single letters: where there is one, all such fields go."""
    secrets: set[str] = field(default_factory=set)
    """Those that were typed."""


class KeyEvents:
    """What may be spelled, made ready once: a trace may have thousands of members."""

    def __init__(self, secrets: Iterable[str]) -> None:
        every = tuple(one for one in secrets if len(one) <= LONGEST_SECRET_CHARS)
        self.longest = max(map(len, every), default=0)
        """0: there are none."""
        self.long = tuple(one for one in every if len(one) > _TOGETHER_CHARS)
        self.short = Automaton(one for one in every if len(one) <= _TOGETHER_CHARS)


class Spelling:
    """Reads one member of a trace from its beginning to its end."""

    def __init__(self, words: KeyEvents) -> None:
        self._longest, self._long, self._short = words.longest, words.long, words.short
        self._texts: dict[bytes, _Text] = defaultdict(_Text)
        """What is spelled as yet, by what spells it; no more than a secret is long."""
        self._is_shifted = False
        self.found = Spelled()

    def read(self, block: bytes) -> None:
        """Go on with some lines."""
        line, last = None, 0
        for match in _PIECES.finditer(block) if self._longest else ():
            begins, ends = match.span(match.lastindex)  # each has one group
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
        for begins, ends in (*self._ended(text, since), *self._long_ended(text, since)):
            for one in text.pieces_within(begins, ends):
                self._mark(one, text.joined[begins:ends])
                self.found.boxes.update((one.line,) if by in OF_BOXES else ())
        text.shorten(self._longest)

    def _ended(self, text: _Text, since: int) -> Iterator[tuple[int, int]]:
        """Where secrets stand that began in a piece before, and end or go on in the last."""
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

    def _long_ended(self, text: _Text, since: int) -> Iterator[tuple[int, int]]:
        """The same of long ones."""
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
        if len(spelled.calls[call[1]]) > MOST_OF_CALL:
            return b"{}"
        for raw in spelled.calls[call[1]]:
            line = _without_keys(line, raw)
        return line
    if spelled.boxes and speller(line[:_HEAD_BYTES]) == BOXES:
        return re.sub(_BOX.encode("latin-1"), _without_text, line)
    if spelled.lines and digest(line) in spelled.lines:
        return re.sub(_FIELD.encode(), _without_text, line)
    return line


def _without_keys(line: bytes, raw: bytes) -> bytes:
    for opens, closes in ((b':"', b'"'), (rb"\"", rb"\""), (b"('", b"')"), (rb"(\"", rb"\")")):
        line = line.replace(opens + raw + closes, opens + _HIDDEN + closes)
    return line


def _without_text(match: re.Match[bytes]) -> bytes:
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
"""By calls; the others by lines."""
BOXES: Final = b"boxes"
OF_BOXES: Final = (BOXES, b"filled")
"""Fields of single letters."""


def speller(head: bytes) -> bytes | None:
    """What spells with this line. None: nothing."""
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
"""By their code, what they type without Shift and with it."""
_ABOVE_DIGITS: Final = ")!@#$%^&*("
_CODE: Final = re.compile(r"Key([A-Z])|Digit([0-9])|Numpad([0-9]|Decimal)")
_OTHER_MODIFIERS: Final = ("Control+", "Alt+", "Meta+", "ControlOrMeta+")


def letter_of(key: str, *, is_shifted: bool) -> str:
    """What a key types, or takes off (`BACKSPACE`). Nothing: it does neither.

    `is_shifted`: whether Shift is held beside those that the key's name tells.
    """
    if len(key) == 1:
        return key
    held, plus, name = key.rpartition("+")
    if any(one in held + plus for one in _OTHER_MODIFIERS):
        return ""
    return _by_name(name or plus, is_shifted=is_shifted or "Shift" in held)


def _by_name(name: str, *, is_shifted: bool) -> str:
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
