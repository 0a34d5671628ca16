"""Runners that also leave a file: no check type of the registry does so yet."""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any, Final

import msgspec

from contract.checks import CheckSpec
from runners.kit.observation import Observation
from runners.kit.runner import RunContext, Runner

NAME: Final = "trace.bin"


def content(file_bytes: int) -> bytes:
    """What each file holds: nothing in it repeats itself."""
    return Random(file_bytes).randbytes(file_bytes)


def filing(runners: Iterable[Runner[Any]], *, file_bytes: int) -> tuple[Runner[Any], ...]:
    """These runners, which leave a file of so many bytes in the run's workspace."""
    return tuple(_Filing(runner, file_bytes) for runner in runners)


class _Filing:
    def __init__(self, runner: Runner[Any], file_bytes: int) -> None:
        self._runner = runner
        self._content = content(file_bytes)

    @property
    def spec(self) -> type[CheckSpec]:
        return self._runner.spec

    async def observe(self, spec: CheckSpec, ctx: RunContext) -> Observation:
        seen = await self._runner.observe(spec, ctx)
        await asyncio.to_thread((ctx.workspace.folder / NAME).write_bytes, self._content)
        artifact = await asyncio.to_thread(ctx.workspace.artifact, NAME, "file")
        return msgspec.structs.replace(seen, artifacts=(artifact,))
