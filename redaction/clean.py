"""The one gate to `Clean`: whatever leaves the agent is scanned once more here.

`Clean` and `CleanFile` cannot be made elsewhere: each requires a seal that this module keeps.
"""

from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from contract.result import Artifact, Outcome, Result
from contract.wire import Wire, encode
from sandbox.workspace import RunFile

if TYPE_CHECKING:
    from redaction.scanner.text import TextScan

_MIB: Final = 1024 * 1024


class MemberKind(StrEnum):
    """What a secret was found in, for people."""

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
    """A place where a secret is left, without its name or value."""

    kind: MemberKind
    place: str
    """Where it is, for example `member 12 of 40, after byte 3145728`."""


class ScanLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a scan; what exceeds them is not clean."""

    unpacked_bytes: int = 4096 * _MIB
    """How many bytes all archives and compressed bodies together may decompress to."""
    depth: int = 6
    """How deep encodings, archives and compressed bodies may be nested."""
    window_bytes: int = _MIB
    """How much is decoded at once."""
    run_bytes: int = 8 * _MIB
    """How long a base64 run may be that contains an archive."""
    members: int = 50_000
    """How many members one archive may have."""


class UnscannableError(Exception):
    """A secret could be there undetected; the message says why."""


class UnscannableMembersError(UnscannableError):
    """A secret could be in some members of an archive undetected; the others have none."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        """Take the reasons by the members' names."""
        super().__init__(next(iter(reasons.values())))
        self.reasons = reasons


class LeakError(Exception):
    """A secret is left; the message says where, never its value."""

    def __init__(self, leak: Leak) -> None:
        super().__init__(f"secret found in {leak.kind}")
        self.leak = leak


class Passed(Wire, frozen=True, kw_only=True, tag="passed", tag_field="sort"):
    """The scanner read the file and found nothing."""

    artifact: Artifact
    """The artifact after redaction."""
    replacements: int = 0
    """How many secrets were hidden before the scan."""
    shows_secret: bool = False
    """Whether a trace shows that a page displayed a secret, which pictures may show too."""
    shows_found: bool = False
    """Whether the page displayed a header's value, which no mask knew as a secret."""
    left_out: tuple[str, ...] = ()
    """Members that were left out and why, for people."""


class Withheld(Wire, frozen=True, kw_only=True, tag="withheld", tag_field="sort"):
    """The file is not sent."""

    because: str
    """The reason, a sentence without its full stop; it has no secret."""
    leak: MemberKind | None = None
    """What a secret was found in. None: the file could not be searched."""
    is_unsearchable: bool = False
    """Whether a secret could be there undetected."""
    is_no_text: bool = False
    """Whether the file would be sent if the run had no secrets."""
    is_our_fault: bool = False
    """Whether the cleaning process failed."""


FileVerdict = Passed | Withheld


class VerdictMessage(Wire, frozen=True, kw_only=True):
    """The message with which the cleaning process reports a verdict."""

    verdict: FileVerdict


_OUTCOME: Final = b'"outcome":'
"""The envelope before it has only ids of the service."""
_SCANS_KEPT: Final = 64


class _Seal:
    """Proves that this module made something."""


_SEAL: Final = _Seal()


class Clean(msgspec.Struct, frozen=True):
    """A result without secrets, which may leave the agent."""

    result: Result
    body: bytes
    """The encoded result that was scanned; exactly these bytes are stored and sent."""
    replacements: int = 0
    """How many secrets were hidden; 0 for a result read from disk."""
    seal: _Seal | None = None
    """Proof that the gate made it."""

    def __post_init__(self) -> None:
        _check_seal(self.seal)


class CleanFile(msgspec.Struct, frozen=True):
    """A file without secrets, which may be uploaded."""

    path: Path
    artifact: Artifact
    seal: _Seal | None = None
    """Proof that the gate made it."""

    def __post_init__(self) -> None:
        _check_seal(self.seal)


class LeakGate:
    """Scans results and makes `Clean` of those without a secret."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[str, ...], TextScan] = OrderedDict()

    def check(
        self, result: Result, body: bytes, *, secrets: tuple[str, ...], replacements: int = 0
    ) -> Clean:
        """Scan the encoded result and make it `Clean`; without secrets, nothing is scanned for.

        Raises:
            LeakError: it has a secret.
            UnscannableError: one could be in it.
        """
        if secrets and self._has_secret(result, body, secrets):
            raise LeakError(Leak(MemberKind.RESULT, "its outcome"))
        return Clean(result, body, replacements, _SEAL)

    def _has_secret(self, result: Result, body: bytes, secrets: tuple[str, ...]) -> bool:
        scan = self._scan_for(secrets)
        if scan.finds_in_log(result.outcome):
            return True
        if not scan.finds(body[body.index(_OUTCOME) :]):
            return False
        from redaction.scanner.text import collect_text  # noqa: PLC0415 - as below

        # Somebody's secret may be called INFO, and the contract too.
        return scan.finds(collect_text(result.outcome))

    def _scan_for(self, secrets: tuple[str, ...]) -> "TextScan":
        # Only now: an agent without secrets has no use for it, and its memory is measured.
        from redaction.scanner.text import TextScan  # noqa: PLC0415

        scan = self._scans.get(secrets)
        if scan is None:
            scan = self._scans[secrets] = TextScan(secrets)
            if len(self._scans) > _SCANS_KEPT:
                self._scans.popitem(last=False)
        self._scans.move_to_end(secrets)
        return scan


def pass_file(file: RunFile, passed: Passed) -> CleanFile:
    """Make a `CleanFile` of a file that the scanner passed."""
    return CleanFile(file.path, passed.artifact, _SEAL)


def restore_clean(result: Result, body: bytes) -> Clean:
    """Make a result `Clean` again that was stored, clean, in the agent's own folder."""
    return Clean(result, body, seal=_SEAL)


def replace_outcome(clean: Clean, outcome: Outcome) -> Clean:
    """Replace the outcome of a clean result by one with the agent's own remark on its files."""
    result = msgspec.structs.replace(clean.result, outcome=outcome)
    return Clean(result, encode(result), clean.replacements, _SEAL)


def _check_seal(seal: _Seal | None) -> None:
    if seal is not _SEAL:
        raise TypeError("only redaction/clean.py makes this, after a scan")
