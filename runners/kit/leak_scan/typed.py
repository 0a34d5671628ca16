"""Put together what was cut into events: keys that were typed, texts that came in chunks."""

from collections import deque
from typing import Final, Protocol

import re2

_FIELD: Final = (
    rb'"(method)": ?"([A-Za-z]{1,40})"'
    rb'|"(key|text|value|data|chunk|payload|payloadData|message|body|buffer)": ?'
    rb'"((?:[^"\\]|\\.)*)"'
)
_LONGEST_BYTES: Final = 4096
"""A longer piece is looked at where it stands; only its ends may belong to its neighbours."""
_MOST_FIELDS: Final = 1000
_GAP: Final = b'"\x01"'


class _Found(Protocol):
    def group(self, number: int, /) -> bytes: ...

    def end(self) -> int: ...


class TypedTexts:
    """Joins the values of each field, by the method that they were given to and altogether."""

    def __init__(self, *, tail_bytes: int) -> None:
        self._pattern = re2.compile(_FIELD, _latin())
        self._ends: dict[tuple[bytes, bytes], bytes] = {}
        self._tail_bytes = tail_bytes
        self._method = b""

    def joined(self, window: bytes, *, known_bytes: int) -> bytes:
        """What the window's new fields make, with what came before them.

        `known_bytes`: so much of its beginning was given before.
        """
        if b'"method"' not in window and b'":' not in window:
            return b""
        said: dict[tuple[bytes, bytes], deque[bytes]] = {}
        for found in self._pattern.finditer(window):
            if found.end() > known_bytes:
                self._note(found, said)
        texts = [self._continued(whose, b"".join(parts)) for whose, parts in said.items()]
        return _GAP.join(texts)

    def _note(self, found: _Found, said: dict[tuple[bytes, bytes], deque[bytes]]) -> None:
        if found.group(1):
            self._method = found.group(2)
            return
        field, value = found.group(3), found.group(4)
        if field == b"key" and not _is_one_key(value):
            return
        if len(value) > _LONGEST_BYTES:
            value = value[: _LONGEST_BYTES // 2] + _GAP + value[-_LONGEST_BYTES // 2 :]
        for whose in ((b"", field), (self._method, field)):
            said.setdefault(whose, deque()).append(value)

    def _continued(self, whose: tuple[bytes, bytes], text: bytes) -> bytes:
        if len(self._ends) > _MOST_FIELDS:
            self._ends.clear()
        text = self._ends.get(whose, b"") + text
        self._ends[whose] = text[-self._tail_bytes :]
        return text


def _is_one_key(value: bytes) -> bool:
    """Not the name of a key such as Enter; an escape is one key too."""
    return value.startswith(b"\\") or len(value.decode("utf-8", "replace")) == 1


def _latin() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options
