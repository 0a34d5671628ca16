"""Heartbeat pings that wait to be relayed: on disk, so that they survive a restart."""

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

from agent.data_folder import lock_folder
from contract.agent_api import Ping

BATCH: Final = 256
"""Pings that are relayed, and settled, together."""
LIMIT_BYTES: Final = 64 * 1024 * 1024
_MEMORY_BATCHES: Final = 40
_SUFFIX: Final = ".pings"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class StoredPing(msgspec.Struct, frozen=True, kw_only=True):
    """A ping as it waits, with what it takes to know its age later."""

    ping_id: str
    token: str
    method: str
    source: str
    user_agent: str
    received_at: datetime
    boot_id: str
    """Names the run of the machine in which `uptime_s` was read."""
    uptime_s: float


class PingClock:
    """Knows how old a ping is: by the machine's uptime, and after a reboot by its calendar."""

    def __init__(
        self,
        *,
        uptime_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        boot_id: str | None = None,
    ) -> None:
        self.uptime_s = uptime_s
        self.now = now
        self.boot_id = boot_id if boot_id is not None else _read_boot_id()

    def age_s(self, ping: StoredPing) -> float:
        """How long ago the ping came in; never negative."""
        if ping.boot_id and ping.boot_id == self.boot_id:
            return max(0.0, self.uptime_s() - ping.uptime_s)
        return max(0.0, (self.now() - ping.received_at).total_seconds())

    def build_ping(self, ping: StoredPing) -> Ping:
        """The ping as the service gets it, with its age now."""
        return Ping(
            ping_id=ping.ping_id,
            token=ping.token,
            received_at=ping.received_at,
            age_s=self.age_s(ping),
            method=ping.method,
            source=ping.source,
            user_agent=ping.user_agent,
        )


class PingStore(Protocol):
    """A bounded queue of pings; what is full loses its oldest."""

    dropped: int
    """Pings lost for want of room."""

    @property
    def in_memory(self) -> int:
        """Pings that are lost when the process ends."""

    def put(self, ping: StoredPing) -> None:
        """Take one more."""

    def oldest(self) -> list[StoredPing]:
        """The oldest batch; empty when none waits. The same one until it is settled."""

    def settle(self) -> None:
        """The oldest batch has arrived."""

    def waiting(self) -> Iterator[StoredPing]:
        """Every ping that waits, oldest first."""

    def close(self) -> None:
        """Let go of files; what waits in them waits for the next agent."""


class PingsInMemory:
    """For an agent without a writable data directory."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: deque[StoredPing] = deque()
        self._batch: list[StoredPing] = []

    @property
    def in_memory(self) -> int:
        """All that wait."""
        return len(self._batch) + len(self._waiting)

    def move_to(self, store: PingStore) -> None:
        """Move what waits to another store, oldest first; not while a batch is being delivered.

        Raises:
            OSError: it takes no more; the rest stays.
        """
        self._waiting.extendleft(reversed(self._batch))
        self._batch = []
        while self._waiting:
            store.put(self._waiting[0])
            self._waiting.popleft()

    def put(self, ping: StoredPing) -> None:
        """Take one more; the oldest one goes when there is no room."""
        self._waiting.append(ping)
        if len(self._waiting) > BATCH * _MEMORY_BATCHES:
            self._waiting.popleft()
            self.dropped += 1

    def oldest(self) -> list[StoredPing]:
        """The oldest batch; empty when none waits."""
        if not self._batch:
            count = min(BATCH, len(self._waiting))
            self._batch = [self._waiting.popleft() for _ in range(count)]
        return self._batch

    def settle(self) -> None:
        """The oldest batch has arrived."""
        self._batch = []

    def waiting(self) -> Iterator[StoredPing]:
        """Every ping that waits, oldest first."""
        yield from (*self._batch, *self._waiting)

    def close(self) -> None:
        """There are no files."""


class PingsOnDisk:
    """One file per batch, one line per ping; a file is gone once its pings have arrived.

    A line is with the operating system before its ping is answered, so a killed agent loses none.
    """

    def __init__(self, directory: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        """Take over what an earlier process left.

        Raises:
            OSError: the directory cannot be made or written, or is another agent's.
        """
        self._directory = directory
        self._lock = lock_folder(directory)
        """Descriptor of the folder: an agent that shares it must not take files in use."""
        self.dropped = 0
        self._limit_bytes = limit_bytes
        self._files = deque(sorted(directory.glob(f"*{_SUFFIX}")))
        self._bytes = sum(file.stat().st_size for file in self._files)
        self._next_number = _parse_number(self._files[-1]) + 1 if self._files else 1
        self._tail: int | None = None
        """Descriptor of the newest file. None: the next ping opens one."""
        self._tail_count = 0
        self._in_delivery: Path | None = None
        """The file whose pings `oldest` gave out. None: none is out."""
        self._open_tail()
        self._close_tail()

    @property
    def in_memory(self) -> int:
        """None: each is with the operating system."""
        return 0

    def put(self, ping: StoredPing) -> None:
        """Take one more; the oldest batch goes when there is no room.

        Raises:
            OSError: the disk does not take it.
        """
        if self._tail is not None and os.fstat(self._tail).st_nlink == 0:
            self._close_tail()  # somebody deleted it: what it takes nobody would read
        if self._tail is None:
            self._open_tail()
        assert self._tail is not None  # noqa: S101 - opened in the line above
        self._write(self._tail, msgspec.json.encode(ping) + b"\n")
        self._tail_count += 1
        if self._tail_count >= BATCH:
            self._close_tail()
        while self._bytes > self._limit_bytes and len(self._files) > 1:
            self.dropped += len(list(_read_lines(self._files[0])))
            self._remove_oldest()

    def oldest(self) -> list[StoredPing]:
        """The oldest batch; empty when none waits. Files without a readable ping are removed."""
        while self._files:
            if len(self._files) == 1:
                self._close_tail()
            if batch := list(_read_lines(self._files[0])):
                self._in_delivery = self._files[0]
                return batch
            self._remove_oldest()
        return []

    def settle(self) -> None:
        """The oldest batch has arrived; it may have given way to newer ones by now."""
        if self._files and self._files[0] == self._in_delivery:
            self._remove_oldest()
        self._in_delivery = None

    def waiting(self) -> Iterator[StoredPing]:
        """Every ping that waits, oldest first."""
        for file in list(self._files):
            yield from _read_lines(file)

    def close(self) -> None:
        """Let go of the newest file and of the folder."""
        self._close_tail()
        os.close(self._lock)

    def _write(self, tail: int, line: bytes) -> None:
        written = os.write(tail, line)
        self._bytes += written
        if written < len(line):
            # The torn line stays the last of its file, so that it spoils no other.
            self._close_tail()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open_tail(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._directory / f"{self._next_number:012}{_SUFFIX}"
        self._tail = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._next_number += 1
        self._tail_count = 0
        self._files.append(file)

    def _close_tail(self) -> None:
        if self._tail is not None:
            os.close(self._tail)
            self._tail = None

    def _remove_oldest(self) -> None:
        if len(self._files) == 1:
            self._close_tail()
        file = self._files.popleft()
        with suppress(FileNotFoundError):
            self._bytes -= file.stat().st_size
            file.unlink()


def _read_lines(file: Path) -> Iterator[StoredPing]:
    """The pings of a file; a line that was cut by a crash is passed over."""
    for line in file.read_bytes().splitlines() if file.exists() else ():
        try:
            yield msgspec.json.decode(line, type=StoredPing)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue


def _parse_number(file: Path) -> int:
    stem = file.name.removesuffix(_SUFFIX)
    return int(stem) if stem.isdigit() else 0


def _read_boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
