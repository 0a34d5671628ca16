"""What the process that makes files clean is told; both sides of its pipe read this."""

from typing import Final

from contract.result import Artifact
from contract.wire import Wire
from runners.kit.isolation.workspace import Look
from runners.kit.secrets.sensitive import SENSITIVE_HEADERS

PICTURES: Final = frozenset({"screenshot", "video"})
"""Kinds of files in which no secret can be hidden."""


class OrderedFile(Wire, frozen=True, kw_only=True):
    """A file that is to be made clean where it lies."""

    path: str
    artifact: Artifact
    look: Look = Look.NONE
    """At the page, as this picture was taken."""


class CleaningOrder(Wire, frozen=True, kw_only=True):
    """What to do."""

    files: tuple[OrderedFile, ...]
    secrets: tuple[str, ...]
    typed: tuple[str, ...] = ()
    """Those that were typed letter by letter: pages may tell their beginnings."""
    header_names: tuple[str, ...] = tuple(SENSITIVE_HEADERS)
    """Of headers whose values are secret whatever they are, in lower case."""
    out_of_sight: tuple[str, ...] = ()
    """Those that no script of the run was given: no mask on a picture is for them."""
    limit_s: float
    """How much CPU time it may take."""
