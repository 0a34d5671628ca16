"""The process in which a run's files are scrubbed and then scanned, beside the agent's own.

It reads its order from standard input, since arguments and environments are shown to others, and
writes a verdict on each file as soon as it has one.
"""

import os
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from contract.result import Artifact
from contract.wire import decode, encode
from runners.kit.isolation.system_calls import give_back_memory, hide_memory
from runners.kit.isolation.workspace import Look, RunFile
from runners.kit.leak_scan.leak import Leak, UnscannableError
from runners.kit.leak_scan.scan import scan_file
from runners.kit.leak_scan.verdict import FileVerdict, Passed, Spoken, Withheld
from runners.kit.scrubbing.file_secrets import (
    HiddenFile,
    NoTextError,
    UnsearchableFileError,
    hide_in_file,
)
from runners.kit.scrubbing.files_order import PICTURES, CleaningOrder
from runners.kit.secrets.job_secrets import with_sure_beginnings
from runners.kit.secrets.sensitive import SENSITIVE_HEADERS

_MAY_SHOW: Final = Withheld(
    because="it may show a secret, as a page of the run did", is_unsearchable=True
)
_NOTHING_TELLS: Final = Withheld(
    because="it may show a secret: the run knew some, and no trace tells what its pages showed",
    is_unsearchable=True,
)
_LEAST_URGENT: Final = 19
TURN_S: Final = 0.001
"""Searching a block takes two to three milliseconds, and what waits for it as long as a turn."""
_OOM_SCORE: Final = "900"
_MEMORY_BYTES: Final = 3 << 30
"""Of address space, of which a pattern of many secrets reserves much and uses little."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What the files before tell of a run's pages."""

    by_trace: bool = False
    """Whether a trace told anything."""
    showed_known: bool = False
    """Whether a page showed a secret that the run knew, which masks lie over."""
    showed_other: bool = False
    """Whether it showed one that no mask knew: its scripts did not, or it was come upon later."""

    def of_picture(self, look: Look, *, was_in_sight: bool) -> Withheld | None:
        """Why a picture does not leave. None: as far as this goes, it does."""
        if self.showed_other or (self.showed_known and look is not Look.MASKED):
            return _MAY_SHOW
        if was_in_sight and not self.by_trace and look is Look.NONE:
            return _NOTHING_TELLS
        return None

    def further(self, artifact: Artifact, verdict: FileVerdict) -> "_Told":
        """With what one more file tells."""
        if isinstance(verdict, Withheld):
            return replace(self, showed_other=self.showed_other or verdict.leak is not None)
        return _Told(
            by_trace=self.by_trace or artifact.kind == "trace",
            showed_known=self.showed_known or verdict.shows_secret,
            showed_other=self.showed_other or verdict.shows_found,
        )


def main() -> None:
    """Make the files of an order clean, one verdict a line."""
    order = decode(sys.stdin.buffer.read(), CleaningOrder)
    _step_back(order.limit_s)
    was_in_sight = len(order.out_of_sight) < len(order.secrets)
    sys.setswitchinterval(TURN_S)
    told = _Told()
    for file in order.files:
        verdict: FileVerdict | None = None
        if file.artifact.kind in PICTURES:
            verdict = told.of_picture(file.look, was_in_sight=was_in_sight)
        verdict = verdict or verdict_on(
            RunFile(Path(file.path), file.artifact),
            order.secrets,
            typed=order.typed,
            out_of_sight=order.out_of_sight,
            header_names=frozenset(order.header_names),
        )
        told = told.further(file.artifact, verdict)
        sys.stdout.buffer.write(encode(Spoken(verdict=verdict)) + b"\n")
        sys.stdout.buffer.flush()


def verdict_on(
    file: RunFile,
    secrets: tuple[str, ...],
    *,
    typed: tuple[str, ...] = (),
    out_of_sight: tuple[str, ...] = (),
    header_names: frozenset[str] = SENSITIVE_HEADERS,
) -> FileVerdict:
    """Scrub a file, then read all of it again with other eyes; it blocks."""
    try:
        hidden = hide_in_file(
            file, secrets, typed=typed, out_of_sight=out_of_sight, header_names=header_names
        )
        give_back_memory()  # expressions of 40 secrets had 50 MB, and the scan has its own
        leaks = scan_file(hidden.file.path, with_sure_beginnings(secrets, typed))
    except (UnsearchableFileError, UnscannableError) as problem:
        is_no_text = isinstance(problem, NoTextError)
        return Withheld(because=str(problem), is_unsearchable=True, is_no_text=is_no_text)
    except OSError as problem:
        return Withheld(because=problem.strerror or "it cannot be read")
    return _withheld(leaks[0]) if leaks else _passed(hidden)


def _passed(hidden: HiddenFile) -> Passed:
    return Passed(
        artifact=hidden.file.artifact,
        replacements=hidden.replacements,
        shows_secret=hidden.shows_secret,
        shows_found=hidden.shows_found,
        left_out=hidden.left_out,
    )


def _withheld(leak: Leak) -> Withheld:
    return Withheld(because=f"secret found in {leak.kind} ({leak.place})", leak=leak.kind)


def _step_back(limit_s: float) -> None:
    """Let everything else go first, and show the secrets to nobody."""
    os.nice(_LEAST_URGENT)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    cpu_s = 2 * int(limit_s) + 1  # two threads search at once
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    with suppress(OSError):
        hide_memory()


if __name__ == "__main__":
    main()
