"""The door: only what the scanner has read, or had read before, is clean and may leave.

`Clean` and `CleanFile` cannot be made elsewhere: each wants a seal, which this module keeps.
"""

from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

import msgspec

from contract.result import Artifact, Outcome, Result
from contract.wire import encode
from runners.kit.isolation.workspace import RunFile
from runners.kit.leak_scan.leak import Leak, LeakError, MemberKind
from runners.kit.leak_scan.verdict import Passed

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


class ResultDoor:
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
        from runners.kit.leak_scan.free_text import free_text  # noqa: PLC0415 - as below

        # Somebody's secret may be called INFO, and the contract too.
        return scan.finds(free_text(result.outcome))

    def _scan_for(self, secrets: tuple[str, ...]) -> _Scan:
        # Only now: an agent without secrets has no use for it, and its memory is measured.
        from runners.kit.leak_scan.text_scan import TextScan  # noqa: PLC0415

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
