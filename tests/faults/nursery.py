"""Programs of ours that start at once: forked from a process that has loaded what they need.

`python -m tests.faults.nursery MODULE` loads it, and carries out orders that come by its standard
input. To load a service takes twenty times the work of starting it, and a scene starts several.
"""

import asyncio
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]
_END_LIMIT_S: Final = 60.0
_ORDER_BYTES: Final = 1 << 16
_LOADER: Final = "LD_PRELOAD"


class Forked:
    """A process out of a nursery, as `asyncio.subprocess.Process` would show it."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, end: Awaitable[int]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._hear(end), name=f"end-{pid}")

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    async def _hear(self, end: Awaitable[int]) -> int:
        self.returncode = await end
        return self.returncode


class Nursery:
    """One process that has loaded a module, and waits to become its program many times."""

    def __init__(self, module: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.nursery", module],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"]},
                stdin=theirs,
                stdout=subprocess.DEVNULL,
            )
        self._orders = ours

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.wait(_END_LIMIT_S)

    async def start(self, environ: Mapping[str, str]) -> Forked:
        """The program with this environment; what it says comes by its `stdout`."""
        reading, writing = os.pipe()
        heard, told = socket.socketpair()
        with told, os.fdopen(writing, "wb"):
            order = json.dumps(dict(environ)).encode()
            socket.send_fds(self._orders, [order], [writing, told.fileno()])
        word, mouth = await asyncio.open_connection(sock=heard)
        pid = int(await word.readline())
        return Forked(pid, await _reader_of(reading), _last_word(word, mouth))


def may_be_forked(environ: Mapping[str, str]) -> bool:
    """Whether all that is asked for can still be had once a program is loaded."""
    return _LOADER not in environ


async def _last_word(word: asyncio.StreamReader, mouth: asyncio.StreamWriter) -> int:
    with closing(mouth):
        return int(await word.readline())


async def _reader_of(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader


def _become_what_is_ordered(orders: socket.socket) -> None:
    """Returns in each process that is to become the program, never in the nursery."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks for the keepers' ends
    while True:
        order, descriptors, *_ = socket.recv_fds(orders, _ORDER_BYTES, 2)
        if not order:
            sys.exit(0)
        said, told = descriptors
        if os.fork() == 0:
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(said, told)
            _set_up(json.loads(order), said, told)
            return
        os.close(said)
        os.close(told)


def _keep(said: int, told: int) -> None:
    """Stay with the process, which returns, and tell its number and how it ended."""
    pid = os.fork()
    if pid == 0:
        return
    os.close(said)
    os.write(told, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _set_up(environ: Mapping[str, str], said: int, told: int) -> None:
    os.environ.clear()
    os.environ.update(environ)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for stream in (1, 2):
        os.dup2(said, stream)
    for descriptor in (nothing, said, told):
        os.close(descriptor)


def main(module: str) -> int:
    """Load it, wait for orders, and be it; its exit code."""
    program = importlib.import_module(module)
    program.load()
    _become_what_is_ordered(socket.socket(fileno=os.dup(0)))
    code: int = program.main()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
