"""Archives that a run left half done, or made to do harm, are read within bounds."""

import io
import os
import struct
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest

from runners.scripting.playwright.partial_trace import is_whole, read_steps
from tests.builders.archives import a_zip

STEPS = {"test.trace": b"{}\n"}


def put(folder: Path, content: bytes) -> Path:
    path = folder / "part.zip"
    path.write_bytes(content)
    return path


def found(path: Path, *, most_bytes: int = 1000) -> dict[str, bytes]:
    return dict(read_steps(path, most_bytes=most_bytes))


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", b"PK\x05\x06", a_zip(STEPS)[:-5], a_zip({})],
    ids=["empty", "begun", "end-cut", "cut", "no-members"],
)
def test_an_archive_that_was_cut_off_is_not_whole(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, content)
    assert not is_whole(path)
    assert found(path) == {}


def test_a_list_of_very_many_members_is_not_read(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        for number in range(300):
            archive.writestr(f"{number:060000}", b"")
    assert not is_whole(put(tmp_path, packed.getvalue()))


def test_a_list_whose_length_is_told_twice_is_not_read(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        for number in range(300):
            archive.writestr(f"{number:060000}", b"")
    whole = packed.getvalue()
    end = whole[-22:]
    size, at = struct.unpack("<II", end[12:20])
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 300, 300, size, at)
    place = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(whole) - 22, 1)
    short = end[:12] + struct.pack("<II", 46, at) + end[20:]
    path = put(tmp_path, whole[:-22] + wide + place + short)
    assert len(ZipFile(path).infolist()) == 300
    assert not is_whole(path)


def test_only_what_playwright_puts_beside_a_tests_steps_is_taken(tmp_path: Path) -> None:
    ours = {**STEPS, "src/1.ts": b"a", "resources/src@2.txt": b"b", "attachments/3": b"c"}
    others = {"../out": b"x", "src/../4": b"x", "0-trace.trace": b"x", "resources/": b""}
    assert found(put(tmp_path, a_zip({**ours, **others}))) == ours


def test_a_member_that_unpacks_to_too_much_is_left_out(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("test.trace", b"{}\n")
        archive.writestr("resources/bomb", b"0" * 1_000_000)
    assert found(put(tmp_path, packed.getvalue())) == STEPS


@pytest.mark.parametrize("packing", [ZIP_BZIP2, ZIP_LZMA])
def test_a_member_that_would_be_unpacked_at_once_is_left_out(tmp_path: Path, packing: int) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("test.trace", b"{}\n")
        archive.writestr("resources/bomb", b"0", packing)
    assert found(put(tmp_path, packed.getvalue())) == STEPS


def test_a_member_that_is_too_long_is_not_unpacked_to_learn_it(tmp_path: Path) -> None:
    short = {"resources/short": b"1"}
    packed = a_zip({**STEPS, "resources/long": b"long" * 300, **short})
    first, long, others = packed.split(b"PK\x03\x04", 3)[1:]
    damaged = b"PK\x03\x04".join([b"", first, long, others]).replace(
        b"PK\x03\x04" + long, b"PK\x00\x00" + long
    )
    assert found(put(tmp_path, damaged)) == {**STEPS, **short}


def test_archives_of_contexts_have_nothing_that_is_wanted(tmp_path: Path) -> None:
    assert found(put(tmp_path, a_zip({"trace.trace": b"{}", "resources/1": b"x"}))) == {}


def test_nobody_elses_file_is_read(tmp_path: Path) -> None:
    secret = put(tmp_path, a_zip(STEPS))
    os.link(secret, tmp_path / "hard.zip")
    (tmp_path / "soft.zip").symlink_to(secret)
    assert found(tmp_path / "hard.zip") == found(tmp_path / "soft.zip") == {}
