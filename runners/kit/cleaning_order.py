"""What the process that makes files clean is told; both sides of its pipe read this."""

from contract.result import Artifact
from contract.wire import Wire


class OrderedFile(Wire, frozen=True, kw_only=True):
    """A file that is to be made clean where it lies."""

    path: str
    artifact: Artifact


class CleaningOrder(Wire, frozen=True, kw_only=True):
    """What to do."""

    files: tuple[OrderedFile, ...]
    secrets: tuple[str, ...]
    limit_s: float
    """How much CPU time it may take."""
