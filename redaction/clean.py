"""The one gate to `Clean`: what may leave the agent, searched once more.

The door: only what the scanner has read, or had read before, is clean and may leave.

`Clean` and `CleanFile` cannot be made elsewhere: each wants a seal, which this module keeps.
"""

from collections import OrderedDict
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from contract.result import Artifact, Outcome, Result
from contract.wire import Wire, encode
from sandbox.workspace import RunFile

_MIB: Final = 1024 * 1024


class MemberKind(StrEnum):
    """What a secret was found in, as a person calls it."""

    RESULT = "result"
    FILE = "file"
    MEMBER_NAME = "member name"
    TRACE_EVENT = "trace event"
    NETWORK_LOG = "network log"
    RESOURCE = "resource"
    ATTACHMENT = "attachment"
    SOURCE = "source"
    SCREEN_PICTURE = "screen picture"
    ARCHIVE_MEMBER = "archive member"


class Leak(NamedTuple):
    """One place in which a secret is left. It holds no name and no value."""

    kind: MemberKind
    place: str
    """As in `member 12 of 40, after byte 3145728`."""


class ScanLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan may cost; beyond it nothing is said to be clean."""

    unpacked_bytes: int = 4096 * _MIB
    """Of all archives and compressed bodies together."""
    depth: int = 6
    """How deep encodings, archives and compressed bodies may lie in each other."""
    window_bytes: int = _MIB
    """How much is decoded at once."""
    run_bytes: int = 8 * _MIB
    """How long a run of base64 may be whose content is an archive."""
    members: int = 50_000
    """Of one archive."""


class UnscannableError(Exception):
    """A secret could be in it and not be found; the text says why."""


class LeakError(Exception):
    """A secret is left in what was to leave; the text says in what, and never the value."""

    def __init__(self, leak: Leak) -> None:
        super().__init__(f"secret found in {leak.kind}")
        self.leak = leak


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


_OUTCOME: Final = b'"outcome":'
"""Before it stands the envelope, whose ids are the service's own."""
_SCANS_KEPT: Final = 64


class _Seal:
    """Proves that this module made something."""


_SEAL: Final = _Seal()


class Clean(msgspec.Struct, frozen=True):
    """A result without secrets; what may leave the agent."""

    result: Result
    body: bytes
    """The result as it was encoded and searched; these bytes are stored and sent."""
    replacements: int = 0
    """How much was hidden. 0 too when it was read from disk."""
    seal: _Seal | None = None
    """Of the door, which alone has one."""

    def __post_init__(self) -> None:
        _check(self.seal)


class CleanFile(msgspec.Struct, frozen=True):
    """A file without secrets; what may be uploaded."""

    path: Path
    artifact: Artifact
    seal: _Seal | None = None
    """Of the door, which alone has one."""

    def __post_init__(self) -> None:
        _check(self.seal)


class _Scan(Protocol):
    def finds(self, text: bytes) -> bool: ...


class LeakGate:
    """Lets results through in which no secret is found."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[str, ...], _Scan] = OrderedDict()

    def through(
        self, result: Result, body: bytes, *, secrets: tuple[str, ...], replacements: int = 0
    ) -> Clean:
        """The result, which is clean now. Without secrets there is nothing to look for.

        Raises:
            LeakError: a secret is in it.
            UnscannableError: one could be in it.
        """
        if secrets and self._holds(result, body, secrets):
            raise LeakError(Leak(MemberKind.RESULT, "its outcome"))
        return Clean(result, body, replacements, _SEAL)

    def _holds(self, result: Result, body: bytes, secrets: tuple[str, ...]) -> bool:
        scan = self._scan_for(secrets)
        if not scan.finds(body[body.index(_OUTCOME) :]):
            return False
        from redaction.scanner.text import free_text  # noqa: PLC0415 - as below

        # Somebody's secret may be called INFO, and the contract too.
        return scan.finds(free_text(result.outcome))

    def _scan_for(self, secrets: tuple[str, ...]) -> _Scan:
        # Only now: an agent without secrets has no use for it, and its memory is measured.
        from redaction.scanner.text import TextScan  # noqa: PLC0415

        scan = self._scans.get(secrets)
        if scan is None:
            scan = self._scans[secrets] = TextScan(secrets)
            if len(self._scans) > _SCANS_KEPT:
                self._scans.popitem(last=False)
        self._scans.move_to_end(secrets)
        return scan


def let_file_through(file: RunFile, passed: Passed) -> CleanFile:
    """The file, which is clean now: `passed` says what the scanner read."""
    return CleanFile(file.path, passed.artifact, _SEAL)


def taken_back(result: Result, body: bytes) -> Clean:
    """What this door let through before, and what lay in the agent's own folder since."""
    return Clean(result, body, seal=_SEAL)


def saying(clean: Clean, outcome: Outcome) -> Clean:
    """A clean result with a word of the agent's own about its files."""
    result = msgspec.structs.replace(clean.result, outcome=outcome)
    return Clean(result, encode(result), clean.replacements, _SEAL)


def _check(seal: _Seal | None) -> None:
    if seal is not _SEAL:
        raise TypeError("only the door makes this, of what the scanner has read")
