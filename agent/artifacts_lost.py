"""What becomes of files that nobody will get: they are counted, and their results say so."""

from collections.abc import Sequence
from typing import Protocol

import structlog

from agent.enclosures import without
from agent.parcel_folder import Broken
from agent.parcels import Parcel
from contract.result import Artifact
from runners.kit.leak_scan.door import Clean, CleanFile, saying

log = structlog.get_logger(__name__)


class DropMeter(Protocol):
    """Where it is counted what nobody will get."""

    def artifacts_dropped(self, count: int) -> None:
        """So many files were given up."""

    def results_dropped(self, count: int) -> None:
        """So many results were given up."""


class Losses:
    """Counts each loss once."""

    def __init__(self, meter: DropMeter) -> None:
        self._meter = meter

    def without(self, clean: Clean, artifacts: Sequence[Artifact], because: str) -> Clean:
        """The result, which says so. Encoded anew: what is added is not a target's word."""
        outcome = clean.result.outcome
        for artifact in artifacts:
            outcome = without(outcome, artifact, because=because)
        self._files(len(artifacts), because, job_id=clean.result.job_id)
        return saying(clean, outcome)

    def of_names(
        self, clean: Clean, files: Sequence[CleanFile]
    ) -> tuple[Clean, tuple[CleanFile, ...]]:
        """Without files whose name held a secret: the result calls them by another one."""
        named = clean.result.outcome.artifacts
        kept = tuple(file for file in files if file.artifact in named)
        if len(kept) == len(files):
            return clean, kept
        held = [file.artifact for file in kept]
        strange = [one for one in named if one not in held]
        return self.without(clean, strange, "its name held a secret"), kept

    def too_old(self, job_id: str, files: int) -> None:
        """A result waited for its files for too long."""
        self._files(files, "too old", job_id=job_id)
        self._result("too old", job_id=job_id)

    def unreadable(self, parcel: Parcel, because: str) -> None:
        """A result and its files are gone."""
        self._files(parcel.files, "broken", because=because)
        self._result("broken", job_id=parcel.lease.job_id)

    def left_broken(self, broken: Broken) -> None:
        """What an earlier process left is of no use."""
        self._files(broken.files, "broken", because=broken.because)
        if broken.is_finished:
            self._result("broken", because=broken.because)

    def _files(self, count: int, reason: str, **more: str) -> None:
        self._meter.artifacts_dropped(count)
        log.error("artifacts.dropped", count=count, reason=reason, **more)

    def _result(self, reason: str, **more: str) -> None:
        self._meter.results_dropped(1)
        log.error("results.dropped", count=1, reason=reason, **more)
