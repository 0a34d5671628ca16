"""Archives of strangers are read within bounds, whatever their headers say."""

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from runners.scripting.suites.bundle_archive import (
    UNPACK_LIMITS,
    BadBundleError,
    UnpackLimits,
    list_members,
    open_archive,
    render,
)

_BLOCK = 512


def zipped(folder: Path, blocks: Iterable[bytes]) -> Path:
    path = folder / "bundle.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for block in blocks:
            file.write(block)
    return path


def header(name: str, size_bytes: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size_bytes, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def read(archive: Path, limits: UnpackLimits = UNPACK_LIMITS) -> list[str]:
    with open_archive(archive, limits) as tar:
        return [name for name, _ in list_members(tar, limits)]


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_header_that_says_it_is_huge_takes_no_memory(tmp_path: Path, kind: bytes) -> None:
    zeros = bytes(1024**2)
    archive = zipped(tmp_path, [header("x", 64 * 1024**2, kind), *(zeros for _ in range(64))])
    tracemalloc.start()
    with pytest.raises(BadBundleError, match="a header of more than 1048576 bytes"):
        read(archive)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 16 * 1024**2


def test_a_small_file_that_unpacks_to_a_huge_one_is_left_early(tmp_path: Path) -> None:
    zeros = bytes(1024**2)
    archive = zipped(tmp_path, [header("zeros", 64 * 1024**2), *(zeros for _ in range(64))])
    assert archive.stat().st_size < 1024**2
    with pytest.raises(BadBundleError, match="unpacks to more than 1000000 bytes"):
        read(archive, UnpackLimits(size_bytes=1_000_000))


def test_what_no_header_counts_is_bounded_as_well(tmp_path: Path) -> None:
    caps = UnpackLimits(size_bytes=1_000_000, members=10)
    padding = [bytes(1024**2)] * 64
    odd = header("odd", 64 * 1024**2, b"Z")
    with pytest.raises(BadBundleError, match="unpacks to more than 1000000 bytes"):
        read(zipped(tmp_path, [odd, *padding, header("x", 0)]), caps)


def test_a_file_with_holes_counts_as_large_as_it_says(tmp_path: Path) -> None:
    sparse = tarfile.TarInfo("holes")
    sparse.type, sparse.size = tarfile.GNUTYPE_SPARSE, 0
    block = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"77777777777\0"  # the size when unpacked: 8 GiB
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(BadBundleError, match="unpacks to more than"):
        read(zipped(tmp_path, [bytes(block), bytes(2 * _BLOCK)]))


def test_headers_of_headers_without_end_are_refused(tmp_path: Path) -> None:
    chain = [header("x", _BLOCK, tarfile.GNUTYPE_LONGNAME) + bytes(_BLOCK) for _ in range(5000)]
    with pytest.raises(BadBundleError, match=r"no readable tar\.gz"):
        read(zipped(tmp_path, chain))


def test_folders_that_no_member_names_count_as_well(tmp_path: Path) -> None:
    blocks = [header("/".join(f"{n}-{m}" for m in range(20))) for n in range(10)]
    archive = zipped(tmp_path, [*blocks, bytes(2 * _BLOCK)])
    assert len(read(archive)) == 10
    with pytest.raises(BadBundleError, match="more than 100 files"):
        read(archive, UnpackLimits(members=100))


def test_thousands_of_empty_files_are_refused(tmp_path: Path) -> None:
    blocks = (header(f"{number}") for number in range(5_000))
    with pytest.raises(BadBundleError, match="more than 4000 files"):
        read(zipped(tmp_path, blocks), UnpackLimits(members=4_000))


def test_members_are_read_where_the_archive_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("./a", "b" * 200, "dir/c"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    assert read(path) == ["a", "b" * 200, "dir/c"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a/b.ts", "a/b.ts"), ("a\udcff", r"'a\udcff'"), ("a\nb", r"'a\nb'"), ("x" * 201, "…")],
)
def test_a_name_can_stand_in_a_sentence(name: str, text: str) -> None:
    assert render(name).endswith(text)
    assert render(name).encode()
