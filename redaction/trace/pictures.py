"""Decides which pictures of a trace may show a secret, by the trace's events."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from redaction.compiled import compile_re2
from redaction.matcher import Span

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_HEAD_BYTES: Final = 600
_END_BYTES: Final = 300
"""How many bytes of a line's end are read: console events name their page at the end."""
_PAGE: Final = re.compile(rb'"pageId":"([^"]+)"')
_FRAME_OF: Final = re.compile(r"(?:^|/)(page@[0-9a-f]+)-[^/]*$")
_SNAPSHOT: Final = b'"type":"frame-snapshot"'
_CONSOLE: Final = b'"type":"console"'
_INPUT: Final = re.compile(
    rb'"method":"(fill|type|press|keyboard\w+|selectOption|setContent|evaluate\w*|setInputFiles)"'
)
_FILL: Final = b"fill"
_CALL: Final = re.compile(rb'"callId":"([^"]+)"')
_AFTER: Final = re.compile(rb'"phase":"after"|"snapshotName":"after@')
_TIME: Final = re.compile(rb'"(?:startTime|timestamp|time)":([0-9.]+)')
"""The monotonic time of an event in ms; one clock for all events of a process."""
_ANY_PAGE: Final = b"*"
"""Stands for all pages, where an event does not say which one."""
_ALWAYS: Final = 0.0
"""Stands for a page that showed a secret at an unknown time."""
_ATTACHED: Final = b'"attachments":['
_SCREENCAST: Final = b'"type":"screencast-frame"'
_SCREENSHOT: Final = b'"type":"screenshot"'
"""A page before or after a call, which newer versions of Playwright take if they are asked to."""
_SCREENSHOTS: Final = re.compile(r"(?:^|/)screenshots/[^/]+$")
_PICTURES: Final = (_SCREENCAST, _SCREENSHOT, _ATTACHED)
"""What blocks have that name pictures."""
_OF_PICTURE: Final = re.compile(rb'"contentType":"(?:image|video)/')
_WHERE: Final = re.compile(rb'"(?:file|sha1|path)":"([^"]+)"')
_ATTACHMENTS: Final = compile_re2(rb'"attachments":\[((?:[^"\]]|' + _STRING + rb")*)\]")
_ATTACHMENT: Final = compile_re2(rb'\{(?:[^"{}]|' + _STRING + rb")*\}")
_MOST_NAMED: Final = 20
"""For so many events of a page its reasons are looked for: others are like them."""
_UNNAMED: Final = "a secret"
_ENTERED: Final = "in an input of the script"
_VALUES: Final = frozenset({"__playwright_value_", "value"})
"""Attributes in which a snapshot has the value of a field."""


class _Fill(NamedTuple):
    """A text with a secret that a script filled into a field."""

    page: bytes
    since_ms: float
    value: str
    reason: str
    """What it was, for people."""


Namer = Callable[[bytes], str]
"""Names the secret in an event, without its value. Empty: it is in a form that has no name."""


def _name_nothing(_: bytes) -> str:
    return ""


class TracePictures:
    """Learns from a trace's events which pictures must be removed.

    A page that shows what a script filled in shows it from then on; one that shows any other secret
    may have shown it at any time. A password field shows dots instead of its value.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, float] = {}
        """Since when each page may show a secret, in ms."""
        self._fills: dict[bytes, _Fill] = {}
        """By call; unless `_into_password_fields` has it too, the secret may be readable."""
        self._into_password_fields: set[bytes] = set()
        """Calls after which only password fields had a secret."""
        self._reasons: dict[bytes, dict[str, None]] = {}
        """What each page showed and where, for people, in the order in which it was found."""
        self._named: Counter[bytes] = Counter()
        """How many events of each page were asked for the name of their secret."""
        self._frames: dict[str, float] = {}
        """The time of each frame, by its file's name without a folder."""
        self._attached: set[str] = set()
        """Names of pictures that the test attached, with or without a folder."""

    @property
    def shows_secret(self) -> bool:
        """Whether any page showed a secret."""
        return bool(self._shown) or not self._fills.keys() <= self._into_password_fields

    def mark_all(self, reason: str = _UNNAMED) -> None:
        """Mark every page, when it is not known which one showed a secret."""
        self._shown[_ANY_PAGE] = _ALWAYS
        self._reasons.setdefault(_ANY_PAGE, {})[reason] = None

    def describe_shown(self, name: str) -> str:
        """What the page of a removed member showed, and where; names, never values."""
        frame = _FRAME_OF.search(name)
        pages = {*self._reasons} if frame is None else {frame[1].encode(), _ANY_PAGE}
        reasons = {
            reason: None
            for page in self._reasons
            if page in pages
            for reason in self._reasons[page]
        }
        for call, fill in self._fills.items():
            is_readable = call not in self._into_password_fields
            if is_readable and (frame is None or fill.page in pages):
                reasons[fill.reason] = None
        return " and ".join(reasons) or _UNNAMED

    def collect(self, block: bytes) -> None:
        """Collect pictures that the test attached, and the times of frames."""
        if _ATTACHED in block:
            self._attached.update(_attached_pictures(block))
        if _SCREENCAST in block:
            for line in filter(_is_frame, block.split(b"\n")):
                file, time = _WHERE.search(line), _TIME.search(line)
                if file is not None and time is not None:
                    self._frames[_base_name(file[1].decode("utf-8", "replace"))] = float(time[1])

    def mark_pages(
        self,
        lines: Iterable[bytes],
        *,
        has_secret: Callable[[bytes], bool],
        is_sure: bool,
        name: Namer = _name_nothing,
    ) -> None:
        """Mark the pages that these events show secrets on.

        Args:
            lines: events, in their order.
            has_secret: whether a text may have a secret.
            is_sure: whether every event is known to have one.
            name: names the secret in an event.
        """
        for line in lines:
            if self._shown.get(_ANY_PAGE) == _ALWAYS:
                return
            head = line[:_HEAD_BYTES]
            method, is_snapshot = _INPUT.search(head), _SNAPSHOT in head
            if method is None and not is_snapshot and _CONSOLE not in head:
                continue
            if not is_sure and not has_secret(line):
                continue
            if method is not None:
                self._note_input(line, head, method[1], name)
                continue
            shown = self._note_shown(line, head, has_secret, is_snapshot=is_snapshot)
            if shown is not None:
                where = "in its content" if is_snapshot else "on its console"
                self._note_reason(_page_of(line, head), shown, where, name)

    def removes(self, name: str) -> bool:
        """Whether the member of this name must be removed."""
        frame = _FRAME_OF.search(name)
        if frame is not None:
            return self._shows(frame[1].encode(), self._frames.get(_base_name(name)))
        is_attached = name in self._attached or _base_name(name) in self._attached
        return self.shows_secret and (is_attached or _SCREENSHOTS.search(name) is not None)

    def remove_events(self, block: bytes) -> tuple[bytes, int]:
        """Remove the events of removed pictures; the block and how many changed."""
        if not self.shows_secret or not any(one in block for one in _PICTURES):
            return block, 0
        lines, kept, changed = block.split(b"\n"), [], 0
        for line in lines:
            if not self._is_of_dropped(line):
                kept.append(_remove_picture_attachments(line))
                changed += kept[-1] != line
        count = len(lines) - len(kept) + changed
        return (b"\n".join(kept), count) if count else (block, 0)

    def _note_reason(self, page: bytes, line: bytes, where: str, name: Namer) -> None:
        if self._named[page] < _MOST_NAMED:
            self._named[page] += 1
            self._reasons.setdefault(page, {})[f"{name(line) or _UNNAMED} {where}"] = None

    def _note_input(self, line: bytes, head: bytes, method: bytes, name: Namer) -> None:
        page, call, since_ms = _page_of(line, head), _call_of(head), _time_of(head)
        value = _filled_value(line) if method == _FILL else None
        if call is None or value is None:
            self._mark(page, since_ms)
            self._note_reason(page, line, _ENTERED, name)
            return
        before = self._fills.get(call)
        if before is not None and before.since_ms != since_ms:  # of another process
            self._mark(_ANY_PAGE, min(since_ms, before.since_ms))
        reason = f"{name(line) or _UNNAMED} {_ENTERED}"
        self._fills[call] = _Fill(page, since_ms, value, reason)

    def _note_shown(
        self, line: bytes, head: bytes, has_secret: Callable[[bytes], bool], *, is_snapshot: bool
    ) -> bytes | None:
        """A page shows a secret: the event without password fields. None: only these have it."""
        page, call = _page_of(line, head), _call_of(head)
        fill = None if call is None else self._fills.get(call)
        is_after = _AFTER.search(head) is not None
        if call is not None and fill is not None:
            # Newer traces do not name the page of the call itself.
            fill = self._fills[call] = fill._replace(page=page)
        rest, passwords = _without_texts(line, ()) if is_snapshot else (line, [])
        if not has_secret(rest):
            if call is not None and fill is not None and is_after and fill.value in passwords:
                self._into_password_fields.add(call)
            return None
        given = [
            one
            for of_call, one in self._fills.items()
            if one.page == page and (is_after or of_call != call) and one.since_ms <= _time_in(line)
        ]
        others, _ = _without_texts(line, [one.value for one in given])
        is_explained = is_snapshot and given and not has_secret(others)
        self._mark(page, min(one.since_ms for one in given) if is_explained else _ALWAYS)
        return rest

    def _mark(self, page: bytes, since_ms: float) -> None:
        self._shown[page] = min(since_ms, self._shown.get(page, since_ms))

    def _is_of_dropped(self, line: bytes) -> bool:
        if not _is_frame(line):
            return _SCREENSHOT in line[:_HEAD_BYTES]
        page, time = _PAGE.search(line), _TIME.search(line)
        return self._shows(
            b"" if page is None else page[1], None if time is None else float(time[1])
        )

    def _shows(self, page: bytes, time_ms: float | None) -> bool:
        """Whether a page may show a secret at a time. None: it is not known when."""
        since = [self._shown[one] for one in (page, _ANY_PAGE) if one in self._shown]
        since += [
            fill.since_ms
            for call, fill in self._fills.items()
            if call not in self._into_password_fields and fill.page in {page, _ANY_PAGE}
        ]
        return bool(since) and (time_ms is None or time_ms >= min(since))


def lines_with(spans: list[Span], block: bytes) -> Iterator[bytes]:
    """Yield each line that has a span, once."""
    end = -1
    for span in spans:
        if span.end <= end:
            continue
        start = max(end, block.rfind(b"\n", 0, span.start + 1)) + 1
        end = block.find(b"\n", max(start, span.end - 1))
        end = end if end >= 0 else len(block)
        yield from block[start:end].split(b"\n")


def _page_of(line: bytes, head: bytes) -> bytes:
    named = _PAGE.search(head)
    if named is not None:
        return named[1]
    pages = _PAGE.findall(line[-_END_BYTES:])
    return pages[-1] if pages else _ANY_PAGE


def _remove_picture_attachments(line: bytes) -> bytes:
    return _ATTACHMENTS.sub(_without_pictures, line) if _ATTACHED in line else line


def _attached_pictures(block: bytes) -> set[str]:
    found = set()
    for listed in _ATTACHMENTS.finditer(block):
        for one in _ATTACHMENT.findall(listed[1]):
            where = _WHERE.search(one)
            if where is not None and _OF_PICTURE.search(one):
                found.add(where[1].decode("utf-8", "replace"))
    return found


def _without_pictures(listed: re.Match[bytes]) -> bytes:
    kept = [one for one in _ATTACHMENT.findall(listed[1]) if not _OF_PICTURE.search(one)]
    return b'"attachments":[' + b",".join(kept) + b"]"


def _is_frame(line: bytes) -> bool:
    return _SCREENCAST in line[:_HEAD_BYTES]


def _base_name(name: str) -> str:
    return name.rpartition("/")[2]


def _call_of(head: bytes) -> bytes | None:
    found = _CALL.search(head)
    return None if found is None else found[1]


def _time_of(head: bytes) -> float:
    """The time of an input. `_ALWAYS`: it has none."""
    found = _TIME.search(head)
    return _ALWAYS if found is None else float(found[1])


def _time_in(snapshot: bytes) -> float:
    """The time of a snapshot, which stands behind its texts. `_ALWAYS`: it has none."""
    found = _TIME.findall(snapshot[snapshot.rfind(b'"timestamp":') :])
    return float(found[0]) if found else _ALWAYS


def _filled_value(line: bytes) -> str | None:
    """What a call filled in. None: the event does not say it."""
    try:
        value = msgspec.json.decode(line)["params"]["value"]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return None
    return value if isinstance(value, str) and value else None


def _without_texts(line: bytes, texts: Iterable[str]) -> tuple[bytes, list[str]]:
    """A snapshot without the values of its password fields, which come too, and without texts.

    Only a text or value that is the same as a whole goes: another secret may contain it.
    A snapshot that cannot be read stays as it is.
    """
    try:
        event = msgspec.json.decode(line)
        passwords: list[str] = []
        event["snapshot"]["html"] = _strip(event["snapshot"]["html"], [*texts], passwords)
        return msgspec.json.encode(event), passwords
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError, ValueError):
        return line, []


def _strip(node: Any, texts: list[str], passwords: list[str]) -> Any:
    """A copy of a node, which is a text, or an element as [name, attributes, child, …]."""
    if isinstance(node, str):
        return "" if node in texts else node
    if isinstance(node, dict):
        return {name: _strip(value, texts, passwords) for name, value in node.items()}
    if not isinstance(node, list):
        return node
    match node:
        case [str(name), dict(attributes), *children] if _is_password_field(name, attributes):
            found = {value: attributes[value] for value in _VALUES & attributes.keys()}
            passwords += [value for value in found.values() if isinstance(value, str)]
            node = [name, {k: v for k, v in attributes.items() if k not in found}, *children]
        case _:
            pass
    return [_strip(child, texts, passwords) for child in node]


def _is_password_field(name: str, attributes: dict[str, Any]) -> bool:
    kind = attributes.get("type")
    return name.upper() == "INPUT" and isinstance(kind, str) and kind.lower() == "password"
