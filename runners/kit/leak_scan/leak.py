"""What the scanner tells: where a secret is left, or why nobody can know."""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

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
