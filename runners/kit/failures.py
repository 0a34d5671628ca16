"""Why a run has no outcome or a bad one: the target's fault, or this machine's."""

from collections.abc import Mapping

from contract.result import Failure, FailureKind


class CheckFailed(Exception):  # noqa: N818 - a verdict on the target, not an error of ours
    """The target's fault. Whatever else a runner raises is ours, and never fails the check."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        detail: Mapping[str, str | int | float | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message, detail=dict(detail or {}))


class MachineError(Exception):
    """This machine lacks what a run needs, as a sentence; the job belongs to another one."""
