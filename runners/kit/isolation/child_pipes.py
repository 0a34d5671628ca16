"""The pipes between a child and us, read by the event loop."""

import asyncio
import fcntl
import os
from collections.abc import Callable
from typing import Final

_READ_BYTES: Final = 64 * 1024
_LAST_READS: Final = 64
"""After the end of all writers a pipe holds at most 1 MB."""
_ABOVE_STANDARD: Final = 10


def open_pipe() -> tuple[int, int]:
    """The reading and the writing end, both clear of the numbers that a child's ends get."""
    ends = os.pipe2(os.O_CLOEXEC)
    try:
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD) for end in ends)
    finally:
        for end in ends:
            os.close(end)
    return read, write


class PipeReader:
    """Hands on whatever comes out of a pipe."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._is_open = True
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def finish(self) -> None:
        """Hand on what is still there, and close; nobody writes any more."""
        try:
            for _ in range(_LAST_READS):
                if not self._is_open or not self._read():
                    break
        finally:
            self._close()

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._take(data)
        else:
            self._close()
        return bool(data)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)


class PipeWriter:
    """Writes one message into a pipe, and closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_open = True
        self._room: asyncio.Future[None] | None = None
        """Waited for while the pipe is full. None: it is not."""
        os.set_blocking(descriptor, False)

    async def write(self, message: bytes) -> None:
        """Write all of it; a reader that is gone gets nothing, which its end tells anyway."""
        left = memoryview(message)
        try:
            while left and self._is_open:
                left = left[await self._some(left) :]
        except BrokenPipeError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """No more comes."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._see_room()

    async def _some(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            self._room = loop.create_future()
            loop.add_writer(self._descriptor, self._see_room)
            await self._room
            return 0

    def _see_room(self) -> None:
        if self._is_open:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
