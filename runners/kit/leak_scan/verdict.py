"""What became of a file that was to be made clean: it passed, or it is withheld."""

from contract.result import Artifact
from contract.wire import Wire
from runners.kit.leak_scan.leak import MemberKind


class Passed(Wire, frozen=True, kw_only=True, tag="passed", tag_field="sort"):
    """The scanner has read it, and found nothing."""

    artifact: Artifact
    """As it is now."""
    replacements: int = 0
    """How much was hidden before."""
    shows_secret: bool = False
    """A trace tells that a page showed a secret: so may the pictures of its run."""
    shows_found: bool = False
    """What it showed was a header's value, which nobody had called secret before."""
    left_out: tuple[str, ...] = ()
    """What of the files in it does not leave with it, and why, for the reader."""


class Withheld(Wire, frozen=True, kw_only=True, tag="withheld", tag_field="sort"):
    """It does not leave."""

    because: str
    """One sentence without its end; it holds no secret."""
    leak: MemberKind | None = None
    """What a secret was found in. None: it could not be searched."""
    is_unsearchable: bool = False
    """Whether a secret could be in it and not be found."""
    is_no_text: bool = False
    """Whether it would be kept if there were no secrets."""
    is_our_fault: bool = False
    """Whether whoever searched it broke down."""


FileVerdict = Passed | Withheld


class Spoken(Wire, frozen=True, kw_only=True):
    """A verdict on its way between two processes."""

    verdict: FileVerdict
