"""Forms with a file: their fields, and then the file as it arrives (RFC 7578).

A form of ours has its file last, so that all else is known before the first byte of it. Parsers
from libraries keep a file in a temporary folder first, which is memory in a container.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from service.http.errors import InvalidError, TooLargeError

KIND: Final = "multipart/form-data"
MOST_FIELDS_BYTES: Final = 64 * 1024
"""How long all fields before the file may be together, their heads included."""
_BOUNDARY: Final = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_NAME: Final = re.compile(rb';\s*name="([^"]*)"', re.IGNORECASE)
_FILE_NAME: Final = re.compile(rb';\s*filename="([^"]*)"', re.IGNORECASE)
_END_OF_HEAD: Final = b"\r\n\r\n"
_TORN: Final = "The form did not arrive whole."
_UNREADABLE: Final = "The form cannot be read."


@dataclass(frozen=True, slots=True)
class ArrivingForm:
    """A form whose file is still on its way."""

    pairs: tuple[tuple[str, str], ...]
    file: AsyncIterator[bytes] | None
    """The bytes of the file. None: none was chosen."""


async def read_multipart(content_type: str, parts: AsyncIterator[bytes]) -> ArrivingForm:
    """The fields of a form up to its file.

    Raises:
        InvalidError: it is no form, or ends too early.
        TooLargeError: its fields are too long.
    """
    body = _Body(parts)
    mark = b"\r\n--" + _boundary_of(content_type)
    await body.take_until(mark)
    pairs: list[tuple[str, str]] = []
    while await body.take_until(b"\r\n") != b"--":
        head = await body.take_until(_END_OF_HEAD)
        name, file_name = _NAME.search(head), _FILE_NAME.search(head)
        if name is None:
            raise InvalidError(_UNREADABLE, keys=())
        if file_name is not None and file_name[1]:
            return ArrivingForm(tuple(pairs), body.stream_until(mark))
        value = await body.take_until(mark)
        if file_name is None:
            pairs.append((_decode(name[1]), _decode(value)))
    return ArrivingForm(tuple(pairs), None)


def _boundary_of(content_type: str) -> bytes:
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise InvalidError(_UNREADABLE, keys=())
    return (found[1] or found[2]).encode("latin-1")


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidError(_UNREADABLE, keys=()) from None


class _Body:
    """The bytes of a form, cut at marks; it holds no more than a part and a mark of them."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        # The first mark has no line before it.
        self._held = b"\r\n"
        self._taken = 0

    async def take_until(self, mark: bytes) -> bytes:
        """What stands before a mark, which is passed over."""
        taken = bytearray()
        async for piece in self.stream_until(mark):
            self._taken += len(piece)
            if self._taken > MOST_FIELDS_BYTES:
                raise TooLargeError(f"The form is larger than {MOST_FIELDS_BYTES} bytes.")
            taken += piece
        return bytes(taken)

    async def stream_until(self, mark: bytes) -> AsyncIterator[bytes]:
        """What stands before a mark, piece by piece."""
        kept = len(mark) - 1
        while (at := self._held.find(mark)) < 0:
            if len(self._held) > kept:
                ready, self._held = self._held[:-kept], self._held[-kept:]
                yield ready
            more = await anext(self._parts, None)
            if more is None:
                raise InvalidError(_TORN, keys=())
            self._held += more
        before, self._held = self._held[:at], self._held[at + len(mark) :]
        if before:
            yield before
