"""Runners that also leave a file: no check type of the registry does so yet."""

import asyncio
import os
from collections.abc import Callable, Iterable
from random import Random, SystemRandom
from typing import Any, Final

import msgspec

from contract.checks import ApiSpec, CheckSpec
from runners.runner import Observation, RunContext, Runner

NAME: Final = "trace.bin"
TRACE: Final = "trace.zip"
_SHARE: Final = float(os.environ.get("QUICK_SHARE", "0.25"))
"""Of the runs that may leave a trace, for making one clean takes a second."""
_DICE: Final = SystemRandom()


def content(file_bytes: int) -> bytes:
    """What each file holds: nothing in it repeats itself."""
    return Random(file_bytes).randbytes(file_bytes)


def filing(runners: Iterable[Runner[Any]], *, file_bytes: int) -> tuple[Runner[Any], ...]:
    """These runners, which leave a file of so many bytes in the run's workspace."""
    made = content(file_bytes)
    return tuple(_Filing(runner, NAME, made, leaves=lambda _: True) for runner in runners)


def leaving(runners: Iterable[Runner[Any]], *, trace: bytes) -> tuple[Runner[Any], ...]:
    """These runners, which leave a trace in some runs of checks whose URL ends with `/leaving`."""
    return tuple(_Filing(runner, TRACE, trace, leaves=_leaves_now_and_then) for runner in runners)


def _leaves_now_and_then(spec: CheckSpec) -> bool:
    return (
        isinstance(spec, ApiSpec)
        and spec.request.url.endswith("/leaving")
        and _DICE.random() < _SHARE
    )


class _Filing:
    def __init__(
        self, runner: Runner[Any], name: str, content: bytes, *, leaves: Callable[[CheckSpec], bool]
    ) -> None:
        self._runner = runner
        self._name = name
        self._content = content
        self._leaves = leaves

    @property
    def spec(self) -> type[CheckSpec]:
        return self._runner.spec

    async def observe(self, spec: CheckSpec, ctx: RunContext) -> Observation:
        seen = await self._runner.observe(spec, ctx)
        if not self._leaves(spec):
            return seen
        await asyncio.to_thread((ctx.workspace.folder / self._name).write_bytes, self._content)
        artifact = await asyncio.to_thread(ctx.workspace.artifact, self._name, "file")
        return msgspec.structs.replace(seen, artifacts=(artifact,))
