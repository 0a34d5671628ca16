"""A transfer that pauses until there is memory for its body."""

import asyncio
from collections.abc import Sequence
from typing import Final

import pycurl

from runners.net.http.body_memory import BodyLease, BodyMemoryError
from runners.net.http.curl_multi import CurlMulti
from runners.net.http.response import STORED_BYTES
from runners.net.http.transfer import READ_LIMIT_BYTES, Transfer

_STOP: Final = 0
_PAUSE: Final[int] = pycurl.WRITEFUNC_PAUSE


class MemoryWait:
    """Asks for the memory of one transfer's body, as soon as it is longer than any result's."""

    def __init__(
        self, lease: BodyLease, transfer: Transfer, multi: CurlMulti, *, timeout_ms: int
    ) -> None:
        lease.release()  # what the hop before has held
        self._lease, self._transfer, self._multi = lease, transfer, multi
        self._timeout_ms = timeout_ms
        self._waited_before_s = lease.waited_s
        transfer.ask_for_memory = self._ask

    @property
    def waited_s(self) -> float:
        """How long this transfer has waited."""
        return self._lease.waited_s - self._waited_before_s

    def require_memory(self) -> None:
        """Hold that the transfer did not end for want of memory.

        Raises:
            BodyMemoryError: it did.
        """
        if self._lease.has_given_up:
            raise BodyMemoryError(f"A body waited {self.waited_s:.1f} s for memory in vain.")

    def _ask(self) -> int | None:
        lease, transfer = self._lease, self._transfer
        if transfer.long_body is not None or READ_LIMIT_BYTES - transfer.room < STORED_BYTES:
            return None
        if lease.has_given_up:
            return _STOP
        if lease.is_held or lease.take(expected_bytes(transfer.lines), self._go_on):
            transfer.keep_in_one_piece()
            return None
        # Not at once: libcurl takes no options within its callbacks.
        asyncio.get_running_loop().call_soon(self._postpone)
        return _PAUSE

    def _postpone(self) -> None:
        """Move libcurl's own time limit; the run's limit is moved by how long it really waited."""
        lease = self._lease
        if self._multi.is_running(self._transfer.curl):
            limit_ms = self._timeout_ms + int((lease.max_wait_s + lease.waited_s) * 1000)
            self._transfer.curl.setopt(pycurl.TIMEOUT_MS, limit_ms)

    def _go_on(self) -> None:
        self._multi.resume(self._transfer.curl)


def expected_bytes(lines: Sequence[bytes]) -> int:
    """How long a body can become after these header lines: its length, or the limit."""
    length = READ_LIMIT_BYTES
    for line in reversed(lines):
        name, _, value = line.partition(b":")
        match name.strip().lower():
            case b"content-encoding" | b"transfer-encoding":
                return READ_LIMIT_BYTES
            case b"content-length" if value.strip().isdigit():
                length = min(int(value), READ_LIMIT_BYTES)
        if line.startswith(b"HTTP/"):
            break
    return length
