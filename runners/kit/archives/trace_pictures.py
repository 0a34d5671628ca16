"""Pictures in a trace, and which of them may show a secret: text in pixels cannot be hidden."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import re2

from runners.kit.secrets.covers import Cover
from runners.kit.secrets.pattern import SecretPattern

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_HEAD_BYTES: Final = 600
_END_BYTES: Final = 300
"""Of a line: events of the console name their page behind all texts."""
_PAGE: Final = re.compile(rb'"pageId":"([^"]+)"')
_FRAME_OF: Final = re.compile(r"(?:^|/)(page@[0-9a-f]+)-")
_SHOWS: Final = re.compile(rb'"type":"(?:frame-snapshot|console)"')
_INPUT: Final = re.compile(
    rb'"method":"(?:fill|type|press|keyboard\w+|selectOption|setContent|evaluate\w*|setInputFiles)"'
)
_ANY_PAGE: Final = b"*"
"""Stands for all of them, where an event does not tell which one."""
_ATTACHED: Final = b'"attachments":['
_SCREENCAST: Final = b'"type":"screencast-frame"'
_OF_PICTURE: Final = re.compile(rb'"contentType":"(?:image|video)/')
_WHERE: Final = re.compile(rb'"(?:file|sha1|path)":"([^"]+)"')


def _compile(source: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(source, options)


_ATTACHMENTS: Final = _compile(rb'"attachments":\[((?:[^"\]]|' + _STRING + rb")*)\]")
_ATTACHMENT: Final = _compile(rb'\{(?:[^"{}]|' + _STRING + rb")*\}")


class TracePictures:
    """Learns from a trace's events; then knows which pictures must go."""

    def __init__(self) -> None:
        self._pages: set[bytes] = set()
        """Those that had a secret in them."""
        self._attached: set[str] = set()
        """Names of pictures that the test attached, a folder before them or not."""

    @property
    def shows_secret(self) -> bool:
        """Whether any page had one."""
        return bool(self._pages)

    def is_everywhere(self) -> None:
        """It is not known which page had one."""
        self._pages.add(_ANY_PAGE)

    def look_for_attached(self, block: bytes) -> None:
        """Read some events for pictures that the test attached."""
        if _ATTACHED in block:
            self._attached.update(_attached_pictures(block))

    def look_for_pages(self, lines: Iterable[bytes], pattern: SecretPattern | None) -> None:
        """Read some events for where the secrets in them were.

        `pattern`: of the secrets. None: it is known that each event has some.
        """
        if _ANY_PAGE in self._pages:
            return
        for line in lines:
            page = self._page_in_question(line)
            if page is not None and (pattern is None or pattern.may_be_in(line)):
                self._pages.add(page)

    def drops(self, name: str) -> bool:
        """Whether the member of this name must go."""
        frame = _FRAME_OF.search(name)
        if frame is not None:
            return self._shows(frame[1].encode())
        return self.shows_secret and (
            name in self._attached or name.rpartition("/")[2] in self._attached
        )

    def without(self, block: bytes) -> tuple[bytes, int]:
        """The events without those of pictures that must go, and how many were changed."""
        if not self.shows_secret or (_SCREENCAST not in block and _ATTACHED not in block):
            return block, 0
        lines, kept, changed = block.split(b"\n"), [], 0
        for line in lines:
            if not self._is_of_dropped(line):
                kept.append(_kept(line))
                changed += kept[-1] != line
        count = len(lines) - len(kept) + changed
        return (b"\n".join(kept), count) if count else (block, 0)

    def _page_in_question(self, line: bytes) -> bytes | None:
        """Which page a secret in this line would be on. None: it is known already, or on none."""
        head = line[:_HEAD_BYTES]
        if _SHOWS.search(head) is None and _INPUT.search(head) is None:
            return None
        page = _page_of(line, head)
        return None if page in self._pages else page

    def _is_of_dropped(self, line: bytes) -> bool:
        if _SCREENCAST not in line[:_HEAD_BYTES]:
            return False
        page = _PAGE.search(line)
        return self._shows(b"" if page is None else page[1])

    def _shows(self, page: bytes) -> bool:
        return page in self._pages or _ANY_PAGE in self._pages


def lines_with(covers: list[Cover], block: bytes) -> Iterator[bytes]:
    """The lines in which something is covered, each once."""
    end = -1
    for cover in covers:
        if cover.end <= end:
            continue
        start = max(end, block.rfind(b"\n", 0, cover.start + 1)) + 1
        end = block.find(b"\n", max(start, cover.end - 1))
        end = end if end >= 0 else len(block)
        yield from block[start:end].split(b"\n")


def _page_of(line: bytes, head: bytes) -> bytes:
    named = _PAGE.search(head)
    if named is not None:
        return named[1]
    pages = _PAGE.findall(line[-_END_BYTES:])
    return pages[-1] if pages else _ANY_PAGE


def _kept(line: bytes) -> bytes:
    return _ATTACHMENTS.sub(_without_pictures, line) if _ATTACHED in line else line


def _attached_pictures(block: bytes) -> set[str]:
    found = set()
    for listed in _ATTACHMENTS.finditer(block):
        for one in _ATTACHMENT.findall(listed[1]):
            where = _WHERE.search(one)
            if where is not None and _OF_PICTURE.search(one):
                found.add(where[1].decode("utf-8", "replace"))
    return found


def _without_pictures(listed: Any) -> bytes:
    kept = [one for one in _ATTACHMENT.findall(listed[1]) if not _OF_PICTURE.search(one)]
    return b'"attachments":[' + b",".join(kept) + b"]"
