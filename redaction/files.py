"""Hides secrets in a run's files, in a child process: outside the event loop, within a time limit.

A failure of that process costs files, never the result: our fault is not the target's.
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from contract.result import Artifact, ArtifactKind
from contract.wire import UnreadableMessageError, Wire, decode, encode
from redaction.clean import FileVerdict, VerdictMessage, Withheld
from redaction.policy import SENSITIVE_HEADERS
from sandbox.workspace import RunFile, ScreenshotReview

PICTURES: Final = frozenset({"screenshot", "video"})
"""Kinds of artifacts in which no secret can be hidden."""


class OrderedFile(Wire, frozen=True, kw_only=True):
    """A file to clean in place."""

    path: str
    artifact: Artifact
    review: ScreenshotReview = ScreenshotReview.UNREVIEWED
    """Whether and how the page was checked when this picture was taken."""


class CleaningOrder(Wire, frozen=True, kw_only=True):
    """The message that tells the cleaning process what to do."""

    files: tuple[OrderedFile, ...]
    secrets: tuple[str, ...]
    typed: tuple[str, ...] = ()
    """Secrets that were typed letter by letter, so pages may show prefixes of them."""
    header_names: tuple[str, ...] = tuple(SENSITIVE_HEADERS)
    """Lower-case names of headers whose values are always secret."""
    out_of_sight: tuple[str, ...] = ()
    """Secrets that no script of the run was given, so pictures have no masks for them."""
    names: dict[str, str] = msgspec.field(default_factory=dict)
    """What people call the secrets that have a name, by value."""
    limit_s: float
    """How many seconds of CPU time it may take."""


CLEANING_LIMIT_S: Final = 120.0
"""CPU and wall-clock seconds for all files of a run; a trace of 150 MB takes a third of it."""
_COMMAND: Final = [sys.executable, "-P", "-m", "redaction.files_child"]
_ROOT: Final = str(Path(__file__).parents[1])
_READ_BYTES: Final = 1 << 16

log = structlog.get_logger(__name__)


async def clean_in_child(  # noqa: PLR0913 - of one run
    files: Sequence[RunFile],
    secrets: Iterable[str],
    *,
    typed: Iterable[str] = (),
    header_names: Iterable[str] = SENSITIVE_HEADERS,
    in_sight: Iterable[str] | None = None,
    names: Mapping[str, str] = MappingProxyType({}),
    limit_s: float = CLEANING_LIMIT_S,
) -> tuple[FileVerdict, ...]:
    """A verdict on each file; files that pass are cleaned in place.

    `typed`: those of the secrets that were typed letter by letter. `in_sight`: those that the
    run's scripts knew. None: all of them. `names`: what people call those that have a name.

    A file that there was no time for, and one that broke the process, is withheld.
    """
    indexes = sorted(range(len(files)), key=lambda at: _turn(files[at].artifact.kind))
    ordered = [files[at] for at in indexes]
    secrets = tuple(secrets)
    seen = set(secrets if in_sight is None else in_sight)
    order = CleaningOrder(
        files=tuple(map(_order_file, ordered)),
        secrets=secrets,
        typed=tuple(typed),
        header_names=tuple(header_names),
        out_of_sight=tuple(secret for secret in secrets if secret not in seen),
        names=dict(names),
        limit_s=limit_s,
    )
    verdicts = dict(zip(indexes, await _verdicts(ordered, order), strict=True))
    return tuple(verdicts[at] for at in range(len(files)))


def _turn(kind: ArtifactKind) -> int:
    """Traces come first, as they tell what pictures show, and pictures last."""
    return 0 if kind == "trace" else 2 if kind in PICTURES else 1


def _order_file(file: RunFile) -> OrderedFile:
    return OrderedFile(path=str(file.path), artifact=file.artifact, review=file.review)


async def _verdicts(files: Sequence[RunFile], order: CleaningOrder) -> tuple[FileVerdict, ...]:
    """Verdicts in order; files without one are withheld."""
    output, ending = await _run(encode(order), _environment(files), order.limit_s)
    verdicts = _parse_verdicts(output)[: len(files)]
    if len(verdicts) == len(files):
        return tuple(verdicts)
    log.error("cleaning.broke", because=ending, files=len(files) - len(verdicts))
    withheld = Withheld(
        because=f"the agent could not search it for secrets: {ending}", is_our_fault=True
    )
    return (*verdicts, *[withheld] * (len(files) - len(verdicts)))


def _environment(files: Sequence[RunFile]) -> Mapping[str, str]:
    """None of the agent's own variables; temporary files are kept beside the run's files."""
    path = os.pathsep.join((_ROOT, *filter(None, sys.path)))
    folder = str(files[0].path.parent) if files else "/tmp"  # noqa: S108 - nothing is written
    return {"PATH": os.defpath, "PYTHONPATH": path, "TMPDIR": folder, "LANG": "C.UTF-8"}


async def _run(order: bytes, env: Mapping[str, str], limit_s: float) -> tuple[bytes, str]:
    """The process's output, and how it ended."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            env=env,
            cwd="/",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as problem:
        return b"", problem.strerror or "no process"
    output = bytearray()
    try:
        async with asyncio.timeout(limit_s):
            writing = _write(process.stdin, order)
            await asyncio.gather(writing, _read_output(process.stdout, output))
            return bytes(output), _describe_exit(await process.wait())
    except TimeoutError:
        return bytes(output), f"it took more than {limit_s:g} s"
    finally:
        await _kill(process)


async def _write(pipe: asyncio.StreamWriter | None, order: bytes) -> None:
    if pipe is None:
        return
    with suppress(ConnectionError):
        pipe.write(order)
        await pipe.drain()
    pipe.close()


async def _read_output(pipe: asyncio.StreamReader | None, output: bytearray) -> None:
    while pipe is not None and (piece := await pipe.read(_READ_BYTES)):
        output += piece


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _describe_exit(code: int) -> str:
    return (
        f"its process ended with signal {-code}" if code < 0 else f"its process ended with {code}"
    )


def _parse_verdicts(output: bytes) -> list[FileVerdict]:
    verdicts: list[FileVerdict] = []
    for line in output.splitlines():
        try:
            verdicts.append(decode(line, VerdictMessage).verdict)
        except UnreadableMessageError:
            break
    return verdicts
