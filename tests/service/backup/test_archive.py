"""What an archive keeps, and how it knows that it is no more what it was."""

import io
import tarfile
from pathlib import Path

import pytest

from service.backup.archive import (
    FORMAT,
    About,
    ArchivedFile,
    ArchiveError,
    ArchiveReader,
    ArchiveWriter,
)

ABOUT = About(format=FORMAT, release="0.1.0", revision="0035", created_at="2026-11-21T10:00:00")
LONG_NAME = f"artifacts/{'l' * 80}/{'n' * 200}.zip"
CONTENTS = {"key-pepper": b"pepper", LONG_NAME: bytes(range(256)) * 40, "bundles/a/empty": b""}


def written(folder: Path, contents: dict[str, bytes] = CONTENTS, about: About = ABOUT) -> bytes:
    target = io.BytesIO()
    with ArchiveWriter(target, about) as writer:
        for name, content in contents.items():
            (folder / "one").write_bytes(content)
            with (folder / "one").open("rb") as stream:
                writer.add(name, stream)
        writer.finish()
    return target.getvalue()


def read(archive: bytes) -> dict[str, bytes]:
    found = {}

    def keep(file: ArchivedFile) -> None:
        found[file.name] = b"".join(iter(file.stream.read, b""))

    with ArchiveReader(io.BytesIO(archive)) as reader:
        assert reader.about == ABOUT
        assert reader.unpack(keep) == len(found)
    return found


def test_what_was_written_is_read_and_tar_and_sha256sum_understand_it(tmp_path: Path) -> None:
    archive = written(tmp_path)
    assert read(archive) == CONTENTS
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getnames() == ["backup.json", *CONTENTS, "SHA256SUMS"]


def test_an_archive_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    archive = written(tmp_path)
    # What follows the sums are blocks of zeros, which mean nothing.
    end = len(archive.rstrip(b"\0"))
    for length in range(0, end, 97):
        with pytest.raises(ArchiveError, match=r"is not complete|is not a backup"):
            read(archive[:length])


def test_an_archive_in_which_any_byte_of_a_file_was_changed_is_refused(tmp_path: Path) -> None:
    archive = written(tmp_path)
    start = archive.index(bytes(range(256)))
    for place in range(start, start + len(CONTENTS[LONG_NAME]), 501):
        changed = bytearray(archive)
        changed[place] ^= 1
        with pytest.raises(ArchiveError, match="was changed"):
            read(bytes(changed))


def test_an_archive_without_one_of_its_files_is_refused(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(written(tmp_path))) as whole:
        for missing in CONTENTS:
            target = io.BytesIO()
            with tarfile.open(fileobj=target, mode="w") as tar:
                for member in whole.getmembers():
                    if member.name != missing:
                        tar.addfile(member, whole.extractfile(member))
            with pytest.raises(ArchiveError, match="was changed"):
                read(target.getvalue())


@pytest.mark.parametrize("format_", [FORMAT + 1, FORMAT + 40])
def test_an_archive_of_a_newer_version_says_which(tmp_path: Path, format_: int) -> None:
    newer = About(format=format_, release="7.2.0", revision="0099", created_at="")
    with pytest.raises(ArchiveError, match=r"Picket 7\.2\.0, which is newer"):
        ArchiveReader(io.BytesIO(written(tmp_path, about=newer)))


@pytest.mark.parametrize("name", ["/etc/passwd", "artifacts/../../x", ".."])
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="which no backup does"):
        read(written(tmp_path, {name: b"x"}))


def test_a_link_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("artifacts/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    archive = written(tmp_path)
    about, rest = archive[:1024], archive[1024:]
    with pytest.raises(ArchiveError, match="holds artifacts/link"):
        read(about + link.tobuf() + rest)


@pytest.mark.parametrize("content", [b"", b"nothing", bytes(10_240), b"\x1f\x8b\x08\x00" * 300])
def test_other_files_are_no_backups(content: bytes) -> None:
    with pytest.raises(ArchiveError, match="is not a backup of Picket"):
        ArchiveReader(io.BytesIO(content))
