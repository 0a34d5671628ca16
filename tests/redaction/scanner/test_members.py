"""What lies in an archive is listed only where the list is as long as it may be."""

import io
import tracemalloc

import pytest

from redaction.clean import UnscannableError
from redaction.scanner.members import read_members
from tests.builders.archives import PICTURE, a_lying_zip, a_zip


@pytest.mark.parametrize("behind", [b"", b"a comment"])
@pytest.mark.parametrize("before", [b"", b"just text\n", PICTURE])
def test_a_list_that_is_too_long_is_not_read(before: bytes, behind: bytes) -> None:
    lying = a_lying_zip(20_000)
    file = io.BytesIO(before + lying[:-2] + bytes([len(behind), 0]) + behind)
    tracemalloc.start()
    try:
        with pytest.raises(UnscannableError, match="more than 100 members"):
            list(read_members(file, most=100))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_as_many_members_as_there_may_be_are_read() -> None:
    archive = a_zip({f"{number}.txt": b"text" for number in range(10)})
    assert len(list(read_members(io.BytesIO(archive), most=10))) == 10


def test_members_of_stored_archives_within_are_not_of_the_archive_itself() -> None:
    inner = a_zip({f"{number}.txt": b"text" for number in range(8)})
    outer = a_zip({f"{number}.zip": inner for number in range(8)}, is_stored=True)
    assert len(list(read_members(io.BytesIO(outer), most=8))) == 8
    with pytest.raises(UnscannableError, match="more than 7 members"):
        list(read_members(io.BytesIO(outer), most=7))
