"""Whose fault it is that the list of an archive's members cannot be read."""

import errno
import io
import struct
import tracemalloc

import pytest

from redaction.archives.limits import Bounds, TooMuchError, UnsearchableFileError
from redaction.archives.zip_format import read_members
from tests.builders.archives import a_lying_zip, a_zip

WHOLE = a_zip({"a.txt": b"content"})
FAR = struct.pack("<4sIQI", b"PK\x06\x07", 0, 2**64 - 1, 1)
"""Where the wide end of an archive is said to be."""
WIDE = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


class BrokenDisk(io.BytesIO):
    """A file whose disk gives nothing back."""

    def read(self, size: int | None = -1) -> bytes:
        """Fail as the system does.

        Raises:
            OSError: always.
        """
        raise OSError(errno.EIO, f"Input/output error at {size}")


def test_our_disks_error_is_not_the_archives_fault() -> None:
    with pytest.raises(OSError, match="Input/output error"):
        read_members(BrokenDisk(WHOLE), Bounds())


@pytest.mark.parametrize(
    "content",
    [WHOLE[:-30], FAR + WIDE, b"PK\x05\x06"],
    ids=["cut", "nonsense", "empty"],
)
def test_what_is_no_archive_is_called_broken(content: bytes) -> None:
    with pytest.raises(UnsearchableFileError, match="broken zip archive"):
        read_members(io.BytesIO(content), Bounds())


@pytest.mark.parametrize("is_wide_told_elsewhere", [False, True])
def test_a_list_is_not_read_whose_ends_disagree_over_its_length(
    *, is_wide_told_elsewhere: bool
) -> None:
    file = io.BytesIO(a_lying_zip(20_000, is_wide_told_elsewhere=is_wide_told_elsewhere))
    tracemalloc.start()
    try:
        with pytest.raises(TooMuchError, match="over 100 members"):
            read_members(file, Bounds(members=100))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
