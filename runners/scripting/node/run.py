"""Runs one setup or teardown script in a Node process of its own."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Self

import msgspec

from contract.result import Failure, LogLine, MachineError
from runners.scripting.harness import Harness
from runners.scripting.node.node_pool import ScriptNode
from runners.scripting.node.protocol import Broke, Done, ScriptJob, encode_job
from runners.scripting.node.runtimes import Runtime
from runners.scripting.node.verdict import ScriptFacts, judge_ending
from sandbox.program import ProgramExit


class NodeBrokeError(MachineError):
    """Node ended before it ran a script; the job is released."""


class ScriptOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one script."""

    ending: Done | Failure
    """The script's result, or why it failed."""
    log: tuple[LogLine, ...] = ()


class ScriptRunner:
    """Runs the scripts of one run, one after the other.

    Their processes end with the block, not before: ending one takes as much of the machine as the
    request between two scripts, whose time is measured.
    """

    def __init__(
        self, harness: Harness, runtime: Runtime, *, add_secret: Callable[[str], None]
    ) -> None:
        self.runtime = runtime
        self._pool = harness.node_pool
        self._add_secret = add_secret
        self._began = time.monotonic()
        self._lent = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._lent.aclose()

    def elapsed_s(self) -> float:
        """The seconds since the run began."""
        return time.monotonic() - self._began

    async def run(self, job: ScriptJob, *, limit_s: float, limit: str) -> ScriptOutcome:
        """Run a script to its end, or to its time limit, which messages call `limit`.

        Raises:
            NodeBrokeError: Node ended before the script began, or was killed from outside.
            OSError: Node cannot be started.
        """
        message = encode_job(job)
        outcome = await self._run_once(job, message, limit_s=limit_s, limit=limit, fresh=False)
        # A process that waited may have died meanwhile, so a new one gets a second try.
        if outcome is None:
            outcome = await self._run_once(job, message, limit_s=limit_s, limit=limit, fresh=True)
        if outcome is None:
            raise NodeBrokeError(
                f"Node of runtime {self.runtime.id} ended before the script began."
            )
        return outcome

    async def _run_once(
        self, job: ScriptJob, message: bytes, *, limit_s: float, limit: str, fresh: bool
    ) -> ScriptOutcome | None:
        """Run the script in one process. None: the process ended before the script began."""
        lending = self._pool.lend(self.runtime, fresh=fresh)
        node = await self._lent.enter_async_context(lending)
        facts = ScriptFacts(began_ms=self._now_ms(), add_secret=self._add_secret)
        ended = await node.run(message, limit_s=limit_s, hear=facts.take)
        if not facts.has_begun:
            return None
        if ended is not None and ended.was_killed and facts.ending is None:
            raise NodeBrokeError(
                f"Node of runtime {self.runtime.id} was killed from outside during the script."
            )
        printed = () if ended is None else self._shift_log(ended, node)
        log = sorted((*facts.log, *printed), key=lambda line: line.after_ms)
        ending = judge_ending(job.name, facts, ended, limit=limit)
        if isinstance(ending, Failure):
            stack = facts.ending.stack if isinstance(facts.ending, Broke) else ending.message
            log.append(LogLine(after_ms=self._now_ms(), level="ERROR", message=stack))
        return ScriptOutcome(ending=ending, log=tuple(log))

    def _shift_log(self, ended: ProgramExit, node: ScriptNode) -> tuple[LogLine, ...]:
        """Shift the log of the process, whose times count from its start, to the run's start."""
        earlier_ms = (node.started_at - self._began) * 1000
        return tuple(
            msgspec.structs.replace(line, after_ms=max(0.0, earlier_ms + line.after_ms))
            for line in ended.log
        )

    def _now_ms(self) -> float:
        return self.elapsed_s() * 1000
