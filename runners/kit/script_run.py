"""Runs one setup or teardown script in a Node process of its own."""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from contract.result import Failure, LogLine
from runners.kit.harness import Harness
from runners.kit.runtimes import Runtime
from runners.kit.sandbox import Ended
from runners.kit.script_facts import ScriptFacts
from runners.kit.script_messages import Broke, Done, ScriptJob, encode_job
from runners.kit.script_node import ScriptNode
from runners.kit.script_verdict import ending_of

_TRIES: Final = 2
"""A process that waited may have died meanwhile; a new one has no excuse."""


class NodeBrokeError(RuntimeError):
    """Node did not come to run a script; the job goes back."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one script."""

    ending: Done | Failure
    """What it left behind, or why it failed."""
    log: tuple[LogLine, ...] = ()


class ScriptRunner:
    """Runs the scripts of one run, one after the other."""

    def __init__(
        self, harness: Harness, runtime: Runtime, *, keep_secret: Callable[[str], None]
    ) -> None:
        self.runtime = runtime
        self._spares = harness.spares
        self._keep_secret = keep_secret
        self._began = time.monotonic()

    def used_s(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    async def run(self, job: ScriptJob, *, limit_s: float) -> Ran:
        """Run a script to its end, or to the limit.

        Raises:
            NodeBrokeError: Node did not get so far.
            OSError: Node cannot be started.
        """
        message, said = encode_job(job), ""
        for tried in range(_TRIES):
            async with self._spares.lent(self.runtime, fresh=tried > 0) as node:
                facts = ScriptFacts(began_ms=self._ms(), keep_secret=self._keep_secret)
                await node.child.feed(message)
                ended = await node.child.ended(timeout_s=limit_s, on_fact=facts.take)
            if facts.has_begun:
                return self._told(job.file, facts, ended, node, limit_s=limit_s)
            said = ended.log[-1].message if ended.log else f"exit code {ended.exit_code}"
        raise NodeBrokeError(f"Node of runtime {self.runtime.id} did not start a script: {said}")

    def _told(
        self, file: str, facts: ScriptFacts, ended: Ended, node: ScriptNode, *, limit_s: float
    ) -> Ran:
        ending = ending_of(file, facts, ended, limit_s=limit_s)
        log = [*facts.log, *self._printed(ended, node)]
        log.sort(key=lambda line: line.after_ms)
        if isinstance(ending, Failure):
            stack = facts.ending.stack if isinstance(facts.ending, Broke) else ending.message
            log.append(LogLine(after_ms=self._ms(), level="ERROR", message=stack))
        return Ran(ending=ending, log=tuple(log))

    def _printed(self, ended: Ended, node: ScriptNode) -> list[LogLine]:
        """What went past the console; its times count from the start of the process."""
        earlier_ms = (node.started_at - self._began) * 1000
        return [
            msgspec.structs.replace(line, after_ms=max(0.0, earlier_ms + line.after_ms))
            for line in ended.log
        ]

    def _ms(self) -> float:
        return self.used_s() * 1000
