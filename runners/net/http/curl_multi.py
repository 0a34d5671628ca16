"""libcurl's multi interface on the running event loop, be it asyncio's or uvloop."""

import asyncio
import select
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pycurl

CLOSE_WITHIN_S: Final = 1.0

_READ: Final = select.EPOLLIN | select.EPOLLRDHUP
_EVENTS: Final = {
    pycurl.POLL_IN: _READ,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: _READ | select.EPOLLOUT,
}
_READABLE: Final = select.EPOLLIN | select.EPOLLHUP | select.EPOLLRDHUP


@dataclass(frozen=True, slots=True)
class CurlResult:
    """How libcurl ended a transfer."""

    code: int = 0
    """libcurl's error code; 0 is success."""
    message: str = ""
    """libcurl's words for the error."""


FINE: Final = CurlResult()
_Rest = asyncio.Future[CurlResult]
"""How a transfer ends after a pause."""


def make_printable(words: str) -> str:
    """Show what is no character of a text by its number: these words quote what a server sent."""
    if words.isprintable():
        return words
    return "".join(
        char if char.isprintable() else ascii(char)[1:-1].replace("\\udc", "\\x") for char in words
    )


class CurlMulti:
    """Runs transfers on one multi handle.

    The sockets of libcurl sit in an epoll of our own, and the event loop watches only that one
    descriptor: a third cheaper than a watcher per socket, the same on every loop, and safe when
    libcurl closes a socket and the system gives its number out again.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: dict[Any, asyncio.Future[CurlResult | _Rest]] = {}
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._due: float | None = None
        """When libcurl wants to be called, on the monotonic clock. None: it does not."""
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0
        self._broken: OSError | None = None
        """What stopped a callback; libcurl cannot carry it to the waiting exchange."""
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_alarm)
        self._loop.add_reader(self._epoll.fileno(), self._sockets_ready)

    def __repr__(self) -> str:
        return f"CurlMulti(running={len(self._running)}, sockets={len(self._watched)})"

    @property
    def running(self) -> int:
        """How many transfers are under way."""
        return len(self._running)

    @property
    def sockets(self) -> int:
        """How many sockets libcurl waits for."""
        return len(self._watched)

    async def perform(
        self, curl: Any, *, while_paused: Callable[[], Awaitable[float]] | None = None
    ) -> CurlResult:
        """Run one transfer to its end; a cancelled one is taken out at once.

        `while_paused` is awaited when the transfer has paused, before it goes on; it returns how
        long the rest may take.

        Raises:
            OSError: this process is out of descriptors or memory; never the target's fault.
            TimeoutError: the rest took longer.
        """
        ended: asyncio.Future[CurlResult | _Rest] = self._loop.create_future()
        self._running[curl] = ended
        self._multi.add_handle(curl)
        try:
            how = await ended
            if isinstance(how, CurlResult):
                return how
            if while_paused is None:
                raise RuntimeError("Nobody lets a paused transfer go on.")
            limit_s = await while_paused()
            self._go_on(curl)
            async with asyncio.timeout(limit_s):
                return await how
        finally:
            if self._running.pop(curl, None) is not None:
                self._multi.remove_handle(curl)

    def pause(self, curl: Any) -> None:
        """Note that a callback of this transfer pauses it; a transfer may do so once."""
        rest: Any = self._loop.create_future()
        paused, self._running[curl] = self._running[curl], rest
        paused.set_result(rest)

    def _go_on(self, curl: Any) -> None:
        if curl in self._running:  # else it has ended meanwhile
            with suppress(pycurl.error):  # its callback ends it; the result comes below
                curl.pause(pycurl.PAUSE_CONT)
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            self._settle()

    async def close(self) -> None:
        """Drop all connections; transfers under way are cancelled.

        libcurl waits for name lookups that hang, and a lookup cannot be stopped; so it waits in
        a thread of its own, and we wait for that thread no longer than `CLOSE_WITHIN_S`.
        """
        self._loop.remove_reader(self._epoll.fileno())
        if self._alarm is not None:
            self._alarm.cancel()
        for curl, ended in self._running.items():
            self._multi.remove_handle(curl)
            ended.cancel()
        self._running.clear()
        closed = asyncio.Event()
        threading.Thread(target=self._clean_up, args=(closed,), daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await closed.wait()

    def _clean_up(self, closed: asyncio.Event) -> None:
        self._multi.close()
        self._epoll.close()
        with suppress(RuntimeError):  # the loop has not waited for us and is closed itself
            self._loop.call_soon_threadsafe(closed.set)

    def _watch(self, what: int, fd: int, _multi: Any, _assigned: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            # libcurl closes it next, and the system takes it out of the epoll by itself.
            self._watched.discard(fd)
            return
        try:
            if fd in self._watched:
                self._epoll.modify(fd, _EVENTS[what])
            else:
                self._register(fd, _EVENTS[what])
                self._watched.add(fd)
        except OSError as problem:
            self._broken = problem

    def _register(self, fd: int, events: int) -> None:
        try:
            self._epoll.register(fd, events)
        except FileExistsError:  # libcurl did not close it after all
            self._epoll.modify(fd, events)

    def _sockets_ready(self) -> None:
        for fd, events in self._epoll.poll(0):
            if fd not in self._watched:
                # Closed by an earlier turn of this very loop, or kept open without being watched.
                with suppress(OSError):
                    self._epoll.unregister(fd)
                continue
            mask = pycurl.CSELECT_IN if events & _READABLE else 0
            if events & select.EPOLLOUT:
                mask |= pycurl.CSELECT_OUT
            if events & select.EPOLLERR:
                mask |= pycurl.CSELECT_ERR
            self._multi.socket_action(fd, mask)
        self._settle()

    def _set_alarm(self, timeout_ms: int) -> int:
        """Take note of when libcurl wants to be called next.

        It says so several times per transfer, mostly moving the time back, so an alarm that is
        set already stays and looks again when it goes off.
        """
        if timeout_ms < 0:
            self._due = None
            return 0
        self._due = due = time.monotonic() + timeout_ms / 1000
        if self._alarm is not None:
            if self._alarm_at <= due:
                return 0
            self._alarm.cancel()
        self._arm(due, timeout_ms / 1000)
        return 0

    def _arm(self, due: float, delay_s: float) -> None:
        self._alarm_at = due
        if delay_s <= 0:
            self._alarm = self._loop.call_soon(self._alarm_rings)
        else:
            self._alarm = self._loop.call_later(delay_s, self._alarm_rings)

    def _alarm_rings(self) -> None:
        self._alarm = None
        if self._due is None:
            return
        early_s = self._due - time.monotonic()
        if early_s > 0:
            self._arm(self._due, early_s)
            return
        self._due = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()
        # libcurl announces a time only when it differs from the last one it announced.
        if self._due is None:
            self._set_alarm(self._multi.timeout())

    def _settle(self) -> None:
        if self._broken is not None:
            self._fail_all(self._broken)
            self._broken = None
        queued = 1
        while queued:
            queued, done, failed = self._multi.info_read()
            for curl in done:
                self._end(curl, FINE)
            for curl, code, message in failed:
                self._end(curl, CurlResult(code, make_printable(message)))

    def _end(self, curl: Any, how: CurlResult) -> None:
        self._multi.remove_handle(curl)
        ended = self._running.pop(curl, None)
        if ended is not None and not ended.done():
            ended.set_result(how)

    def _fail_all(self, problem: OSError) -> None:
        for curl, ended in self._running.items():
            self._multi.remove_handle(curl)
            if not ended.done():
                ended.set_exception(problem)
        self._running.clear()
