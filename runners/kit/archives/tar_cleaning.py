"""Takes secrets out of a tar archive: its members, their names and what else is said of them."""

import copy
import tarfile
from pathlib import PurePosixPath
from typing import BinaryIO, Final, cast

from runners.kit.archives.contents import Contents, Passage
from runners.kit.archives.search import Search
from runners.kit.archives.unsearchable import TooMuchError, UnsearchableFileError

_FIELDS: Final = ("name", "linkname", "uname", "gname")
_WRITTEN_ANEW: Final = frozenset({"path", "linkpath", "size", "uname", "gname"})


class TarCleaning:
    """Of one archive."""

    def __init__(self, contents: Contents, passage: Passage) -> None:
        self._contents = contents
        self._passage = passage

    def run(self, search: Search) -> int:
        """Write the archive without secrets; how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        total, most = 0, self._contents.budget.bounds.members
        source, target = self._passage.source, self._passage.target
        try:
            with (
                tarfile.open(fileobj=source, mode="r:") as archive,
                tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as clean,
            ):
                for number, member in enumerate(archive):
                    if number >= most:
                        raise TooMuchError(f"it is an archive of over {most} members")
                    total += self._add(archive, clean, member, search)
        except (tarfile.TarError, ValueError, OSError) as problem:
            raise UnsearchableFileError("it is a broken tar archive") from problem
        return total

    def _add(
        self,
        archive: tarfile.TarFile,
        clean: tarfile.TarFile,
        member: tarfile.TarInfo,
        search: Search,
    ) -> int:
        if member.issparse() or _leads_elsewhere(member.name):
            raise UnsearchableFileError("it is a tar archive with an unusual member")
        described, count = _described(member, search)
        content = archive.extractfile(member) if member.isreg() else None
        if content is None:
            clean.addfile(described)
            return count
        with content, self._contents.spool() as inner:
            source = cast("BinaryIO", content)
            passage = Passage(source, inner, member.name, self._passage.depth + 1)
            count += self._contents.clean(passage, search)
            described.size = inner.tell()
            inner.seek(0)
            clean.addfile(described, inner)
        return count


def _described(member: tarfile.TarInfo, search: Search) -> tuple[tarfile.TarInfo, int]:
    described, total = copy.copy(member), 0
    for field in _FIELDS:
        text, count = _hidden(getattr(member, field), search)
        setattr(described, field, text)
        total += count
    described.pax_headers = {}
    for key, value in member.pax_headers.items():
        if key not in _WRITTEN_ANEW:
            described.pax_headers[key], count = _hidden(value, search)
            total += count
    return described, total


def _hidden(text: str, search: Search) -> tuple[str, int]:
    hidden, count = search.hide_in_name(text.encode("utf-8", "surrogateescape"))
    return hidden.decode("utf-8", "surrogateescape"), count


def _leads_elsewhere(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts
