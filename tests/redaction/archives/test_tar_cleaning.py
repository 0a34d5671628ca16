"""Tar archives: members, names and what is said of them."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from redaction.archives.limits import UnsearchableFileError
from redaction.policy import HIDDEN
from tests.builders.archives import a_zip, hidden, hidden_bytes, read_members

SECRET = "s3cr3t-T0ken"


def a_tar(members: dict[str, bytes], **fields: str) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def read(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {one.name: opened.extractfile(one).read() for one in opened}  # type: ignore[union-attr]


def test_members_of_a_tar_are_cleaned(tmp_path: Path) -> None:
    archive = a_tar({"a.txt": f"x {SECRET}".encode(), "b.bin": bytes(9000)})
    left = read_members(hidden_bytes(tmp_path, a_zip({"a.tar": archive}), SECRET))
    assert read(left["a.tar"]) == {"a.txt": f"x {HIDDEN}".encode(), "b.bin": bytes(9000)}


def test_a_packed_tar_is_cleaned(tmp_path: Path) -> None:
    packed = gzip.compress(a_tar({"a.txt": SECRET.encode()}))
    left = hidden_bytes(tmp_path, packed, SECRET, name="a.tar.gz")
    assert read(gzip.decompress(left)) == {"a.txt": HIDDEN.encode()}


def test_names_and_owners_in_a_tar_are_searched(tmp_path: Path) -> None:
    archive = a_tar({f"of-{SECRET}.txt": b"content"}, uname=SECRET)
    left = hidden_bytes(tmp_path, archive, SECRET, name="a.tar")
    assert SECRET.encode() not in left
    assert read(left) == {"of-hidden.txt": b"content"}


@pytest.mark.parametrize(
    "archive",
    [a_tar({"../a.txt": b""}), a_tar({"/a.txt": b""}), a_tar({"a.txt": bytes(999)})[:700]],
)
def test_a_tar_that_misleads_does_not_leave(tmp_path: Path, archive: bytes) -> None:
    with pytest.raises(UnsearchableFileError, match="tar archive"):
        hidden(tmp_path, archive, SECRET, name="a.tar")
