"""Starts a process with nothing of ours but four pipes."""

import asyncio
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from runners.kit.isolation.child_pipes import open_pipe
from runners.kit.isolation.keyrings import take_new_session
from runners.kit.isolation.program import Program

_OWN_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these; a script is to feel them."""
_OOM_SCORE: Final = "800"
"""Where the system itself runs out of memory, it takes a script before the agent."""
_TRIES: Final = 20
_PAUSE_S: Final = 0.0005


class Spawned(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was just started, and our ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    facts: int | None
    """None: the program has no such descriptor."""


def close_pipes(spawned: Spawned) -> None:
    """Close our ends, which nobody has got to read."""
    loop = asyncio.get_running_loop()
    for end in (spawned.stdin, spawned.stdout, spawned.stderr, spawned.facts):
        if end is not None:
            loop.remove_reader(end)
            loop.remove_writer(end)
            os.close(end)


def spawn(line: list[str], program: Program) -> Spawned:
    """Start a command line for a program, in a session of its own.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as on_failure, ExitStack() as theirs:
        stdin = _pipe(theirs, on_failure, we_write=True)
        out, err = (_pipe(theirs, on_failure, we_write=False) for _ in range(2))
        facts = _pipe(theirs, on_failure, we_write=False) if program.facts_fd else None
        ends = [stdin[1], out[1], err[1], *(() if facts is None else (facts[1],))]
        take_new_session()
        pid = _start(line, program.env, ends)
        on_failure.pop_all()
    _give_up_first(pid)
    return Spawned(
        pid=pid,
        stdin=stdin[0],
        stdout=out[0],
        stderr=err[0],
        facts=None if facts is None else facts[0],
    )


def _give_up_first(pid: int) -> None:
    """Let the system take it before the agent; where that is refused for good, it is as it was."""
    for _ in range(_TRIES):
        try:
            Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)
        except PermissionError:
            time.sleep(_PAUSE_S)  # for a moment of its start it belongs to root
        except OSError:
            return
        else:
            return


def _pipe(theirs: ExitStack, on_failure: ExitStack, *, we_write: bool) -> tuple[int, int]:
    """Our end and theirs."""
    read, write = open_pipe()
    our, their = (write, read) if we_write else (read, write)
    theirs.callback(os.close, their)
    on_failure.callback(os.close, our)
    return our, their


def _start(line: list[str], env: dict[str, str], ends: list[int]) -> int:
    return os.posix_spawn(
        line[0],
        line,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)],
        setsid=True,
        setsigmask=(),
        setsigdef=_OWN_SIGNALS,
    )
