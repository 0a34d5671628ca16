"""Decides which pictures of a trace may show a secret, by the trace's events."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from redaction.compiled import compile_re2
from redaction.matcher import Span
from redaction.trace.passwords import (
    AFTER,
    HEAD_BYTES,
    SNAPSHOT,
    TypedPasswords,
    call_of,
    without_texts,
)

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_END_BYTES: Final = 300
"""How many bytes of a line's end are read: console events name their page at the end."""
_PAGE: Final = re.compile(rb'"pageId":"([^"]+)"')
_FRAME_OF: Final = re.compile(r"(?:^|/)(page@[0-9a-f]+)-[^/]*$")
_CONSOLE: Final = b'"type":"console"'
_INPUT: Final = re.compile(
    rb'"method":"(fill|type|press|keyboard\w+|selectOption|setContent|evaluate\w*|setInputFiles)"'
)
_GIVEN: Final = {
    b"fill": "value",
    b"type": "text",
    b"keyboardType": "text",
    b"keyboardInsertText": "text",
}
"""By methods that give a text to a field, the text's parameter."""
_TIME: Final = re.compile(rb'"(?:startTime|timestamp|time)":([0-9.]+)')
"""The monotonic time of an event in ms; one clock for all events of a process."""
_ANY_PAGE: Final = b"*"
"""Stands for all pages, where an event does not say which one."""
_ALWAYS: Final = 0.0
"""Stands for a page that showed a secret at an unknown time."""
_ATTACHED: Final = b'"attachments":['
_SCREENCAST: Final = b'"type":"screencast-frame"'
_OF_PICTURE: Final = re.compile(rb'"contentType":"(?:image|video)/')
_WHERE: Final = re.compile(rb'"(?:file|sha1|path)":"([^"]+)"')
_ATTACHMENTS: Final = compile_re2(rb'"attachments":\[((?:[^"\]]|' + _STRING + rb")*)\]")
_ATTACHMENT: Final = compile_re2(rb'\{(?:[^"{}]|' + _STRING + rb")*\}")


class _Fill(NamedTuple):
    """A text with a secret that one call of a script filled or typed into a field."""

    page: bytes
    since_ms: float
    value: str


class TracePictures:
    """Learns from a trace's events which pictures must be removed.

    A page that shows what a script filled in shows it from then on; one that shows any other secret
    may have shown it at any time. A password field shows dots instead of its value.

    Args:
        typed: secrets that the run typed letter by letter.
    """

    def __init__(self, typed: Iterable[str] = ()) -> None:
        self._typed = TypedPasswords(typed)
        self._shown: dict[bytes, float] = {}
        """Since when each page may show a secret, in ms."""
        self._fills: dict[bytes, _Fill] = {}
        """By call; unless `_into_password_fields` has it too, the secret may be readable."""
        self._into_password_fields: set[bytes] = set()
        """Calls after which only password fields had a secret."""
        self._frames: dict[str, float] = {}
        """The time of each frame, by its file's name without a folder."""
        self._attached: set[str] = set()
        """Names of pictures that the test attached, with or without a folder."""

    @property
    def shows_secret(self) -> bool:
        """Whether any page showed a secret."""
        return (
            self._typed.may_be_readable
            or bool(self._shown)
            or not self._fills.keys() <= self._into_password_fields
        )

    def mark_all(self) -> None:
        """Mark every page, when it is not known which one showed a secret."""
        self._shown[_ANY_PAGE] = _ALWAYS

    def collect(self, block: bytes) -> None:
        """Collect pictures that the test attached, the times of frames, and what was typed."""
        self._typed.collect(block)
        if _ATTACHED in block:
            self._attached.update(_attached_pictures(block))
        if _SCREENCAST in block:
            for line in filter(_is_frame, block.split(b"\n")):
                file, time = _WHERE.search(line), _TIME.search(line)
                if file is not None and time is not None:
                    self._frames[_base_name(file[1].decode("utf-8", "replace"))] = float(time[1])

    def mark_pages(
        self, lines: Iterable[bytes], *, has_secret: Callable[[bytes], bool], is_sure: bool
    ) -> None:
        """Mark the pages that these events show secrets on.

        Args:
            lines: events, in their order.
            has_secret: whether a text may have a secret.
            is_sure: whether every event is known to have one.
        """
        for line in lines:
            if self._shown.get(_ANY_PAGE) == _ALWAYS:
                return
            head = line[:HEAD_BYTES]
            method, is_snapshot = _INPUT.search(head), SNAPSHOT in head
            if method is None and not is_snapshot and _CONSOLE not in head:
                continue
            if not is_sure and not has_secret(line):
                continue
            if method is not None:
                self._note_input(line, head, method[1])
            else:
                self._note_shown(line, head, has_secret, is_snapshot=is_snapshot)

    def removes(self, name: str) -> bool:
        """Whether the member of this name must be removed."""
        frame = _FRAME_OF.search(name)
        if frame is not None:
            return self._shows(frame[1].encode(), self._frames.get(_base_name(name)))
        return self.shows_secret and (name in self._attached or _base_name(name) in self._attached)

    def remove_events(self, block: bytes) -> tuple[bytes, int]:
        """Remove the events of removed pictures; the block and how many changed."""
        if not self.shows_secret or (_SCREENCAST not in block and _ATTACHED not in block):
            return block, 0
        lines, kept, changed = block.split(b"\n"), [], 0
        for line in lines:
            if not self._is_of_dropped(line):
                kept.append(_remove_picture_attachments(line))
                changed += kept[-1] != line
        count = len(lines) - len(kept) + changed
        return (b"\n".join(kept), count) if count else (block, 0)

    def _note_input(self, line: bytes, head: bytes, method: bytes) -> None:
        page, call, since_ms = _page_of(line, head), call_of(head), _time_of(head)
        value = _given_value(line, _GIVEN[method]) if method in _GIVEN else None
        if call is None or value is None:
            self._mark(page, since_ms)
            return
        before = self._fills.get(call)
        if before is not None and before.since_ms != since_ms:  # of another process
            self._mark(_ANY_PAGE, min(since_ms, before.since_ms))
        self._fills[call] = _Fill(page, since_ms, value)

    def _note_shown(
        self, line: bytes, head: bytes, has_secret: Callable[[bytes], bool], *, is_snapshot: bool
    ) -> None:
        """A page shows a secret, if only as dots."""
        page, call = _page_of(line, head), call_of(head)
        fill = None if call is None else self._fills.get(call)
        is_after = AFTER.search(head) is not None
        if call is not None and fill is not None:
            # Newer traces do not name the page of the call itself.
            fill = self._fills[call] = fill._replace(page=page)
        rest, passwords = without_texts(line, ()) if is_snapshot else (line, [])
        if not has_secret(rest):
            if call is not None and fill is not None and is_after and fill.value in passwords:
                self._into_password_fields.add(call)
            return
        given = [
            one
            for of_call, one in self._fills.items()
            if one.page == page and (is_after or of_call != call) and one.since_ms <= _time_in(line)
        ]
        rest, _ = without_texts(line, [one.value for one in given])
        is_explained = is_snapshot and given and not has_secret(rest)
        self._mark(page, min(one.since_ms for one in given) if is_explained else _ALWAYS)

    def _mark(self, page: bytes, since_ms: float) -> None:
        self._shown[page] = min(since_ms, self._shown.get(page, since_ms))

    def _is_of_dropped(self, line: bytes) -> bool:
        if not _is_frame(line):
            return False
        page, time = _PAGE.search(line), _TIME.search(line)
        return self._shows(
            b"" if page is None else page[1], None if time is None else float(time[1])
        )

    def _shows(self, page: bytes, time_ms: float | None) -> bool:
        """Whether a page may show a secret at a time. None: it is not known when."""
        if self._typed.may_be_readable:
            return True
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
    return _SCREENCAST in line[:HEAD_BYTES]


def _base_name(name: str) -> str:
    return name.rpartition("/")[2]


def _time_of(head: bytes) -> float:
    """The time of an input. `_ALWAYS`: it has none."""
    found = _TIME.search(head)
    return _ALWAYS if found is None else float(found[1])


def _time_in(snapshot: bytes) -> float:
    """The time of a snapshot, which stands behind its texts. `_ALWAYS`: it has none."""
    found = _TIME.findall(snapshot[snapshot.rfind(b'"timestamp":') :])
    return float(found[0]) if found else _ALWAYS


def _given_value(line: bytes, parameter: str) -> str | None:
    """What a call gave to a field. None: the event does not say it."""
    try:
        value = msgspec.json.decode(line)["params"][parameter]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return None
    return value if isinstance(value, str) and value else None
