"""Read a whole payload by decoding it, and tell where a secret is left.

It shares nothing with the scrubber, which encodes the secrets and looks for what comes out: what
one of the two forgets, the other must not forget for the same reason.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from runners.kit.isolation.workspace import open_plain
from runners.kit.leak_scan.bodies import Body, Reading
from runners.kit.leak_scan.leak import Leak, MemberKind, ScanLimits, UnscannableError
from runners.kit.leak_scan.members import Member, begins_as_zip, is_zip, members_of
from runners.kit.leak_scan.needles import Needles

_PIECE_BYTES: Final = 256 * 1024
_MOST_LEAKS: Final = 20
_USUAL: Final = ScanLimits()


def scan_file(
    path: Path,
    secrets: Iterable[str],
    *,
    kind: MemberKind = MemberKind.FILE,
    limits: ScanLimits = _USUAL,
) -> tuple[Leak, ...]:
    """Where a file holds one of the secrets; it blocks while it reads.

    Raises:
        UnscannableError: one could be in it and not be found.
        OSError: it cannot be read.
    """
    needles = Needles(secrets)
    if not needles:
        return ()
    with open_plain(path) as file:
        return tuple(_Scan(needles, limits).leaks(file, kind))


def scan_bytes(
    content: bytes,
    secrets: Iterable[str],
    *,
    kind: MemberKind = MemberKind.RESULT,
    limits: ScanLimits = _USUAL,
) -> tuple[Leak, ...]:
    """Where bytes hold one of the secrets.

    Raises:
        UnscannableError: one could be in them and not be found.
    """
    needles = Needles(secrets)
    if not needles:
        return ()
    body = Body(_Scan(needles, limits).reading, depth=0)
    place = _place_in(body, (content,))
    return () if place is None else (Leak(kind, _after(place)),)


def reading_of(needles: Needles, limits: ScanLimits) -> Reading:
    """A scan of its own, for a body that was found in a text."""
    return _Scan(needles, limits).reading


class _Scan:
    def __init__(self, needles: Needles, limits: ScanLimits) -> None:
        self.reading = Reading(needles, limits, self._archive_holds)
        self._limits = limits
        self._leaks: list[Leak] = []

    def leaks(self, file: IO[bytes], kind: MemberKind) -> list[Leak]:
        has_archive = is_zip(file)
        body = Body(self.reading, depth=0, has_archive=has_archive and begins_as_zip(file))
        file.seek(0)
        place = _place_in(body, iter(lambda: file.read(_PIECE_BYTES), b""))
        if has_archive:
            self._look_into(file, depth=1)
        if place is not None and not self._leaks:
            self._leaks.append(Leak(kind, _after(place)))
        return self._leaks

    def _look_into(self, file: IO[bytes], *, depth: int) -> None:
        for member in members_of(file, most=self._limits.members):
            self._leaks += self._leaks_of(member, depth)
            if len(self._leaks) >= _MOST_LEAKS:
                return

    def _archive_holds(self, file: IO[bytes], depth: int) -> bool:
        if depth > self._limits.depth:
            raise UnscannableError(f"more than {self._limits.depth} archives lie in each other")
        members = members_of(file, most=self._limits.members)
        return any(self._leaks_of(member, depth) for member in members)

    def _leaks_of(self, member: Member, depth: int) -> list[Leak]:
        if self.reading.holds(member.name, depth):
            return [Leak(MemberKind.MEMBER_NAME, member.place)]
        body = Body(self.reading, depth=depth)
        place = _place_in(body, map(self._paid, member.content))
        return [] if place is None else [Leak(member.kind, f"{member.place}, {_after(place)}")]

    def _paid(self, piece: bytes) -> bytes:
        self.reading.budget.spend(len(piece))
        return piece


def _place_in(body: Body, pieces: Iterable[bytes]) -> int | None:
    """Where it holds a secret. None: nowhere."""
    for piece in pieces:
        if (place := body.feed(piece)) is not None:
            return place
    return body.close()


def _after(place: int) -> str:
    return f"after byte {place}"
