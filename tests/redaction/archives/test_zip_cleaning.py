"""Zip archives: what holds a secret is cleaned, the rest stays byte for byte."""

import base64
import io
import struct
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.archives.limits import Bounds, UnsearchableFileError
from redaction.policy import HIDDEN
from tests.builders.archives import PICTURE, a_zip, by_hash, hidden, hidden_bytes, read_members

SECRET = "s3cr3t-T0ken"


def test_a_member_with_a_secret_is_cleaned_and_the_others_stay(tmp_path: Path) -> None:
    members = {"a.txt": f"x {SECRET} y".encode(), "b.txt": b"nothing" * 999, "c.jpeg": PICTURE}
    left = read_members(hidden_bytes(tmp_path, a_zip(members), SECRET))
    assert left == {**members, "a.txt": f"x {HIDDEN} y".encode()}


def test_a_secret_across_pieces_of_a_long_member_goes(tmp_path: Path) -> None:
    content = b"x" * (1 << 20) + SECRET.encode() + b"y" * (1 << 20)
    for cut in range(0, 40, 7):
        left = read_members(hidden_bytes(tmp_path, a_zip({"a.bin": content[cut:]}), SECRET))
        assert left["a.bin"] == content[cut:].replace(SECRET.encode(), HIDDEN.encode())


TEXTS = st.text("xyz \n<>&\u00e9\U0001f511", max_size=200)


@given(texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5), plain=st.binary(max_size=99))
def test_a_secret_goes_wherever_it_stands_and_nothing_else_changes(
    texts: list[tuple[str, ...]], plain: bytes
) -> None:
    members = {
        f"{number}.txt": f"text {SECRET.join(text)}".encode() for number, text in enumerate(texts)
    }
    archive = a_zip({**members, "plain.bin": b"bin" + plain})
    with TemporaryDirectory() as folder:
        left = read_members(hidden_bytes(Path(folder), archive, SECRET))
    clean = {name: text.replace(SECRET.encode(), HIDDEN.encode()) for name, text in members.items()}
    assert left == {**clean, "plain.bin": b"bin" + plain}


def test_names_and_comments_are_searched(tmp_path: Path) -> None:
    archive = a_zip({f"of {SECRET}.txt": b"content"}, comment=SECRET.encode())
    clean = hidden_bytes(tmp_path, archive, SECRET)
    assert read_members(clean) == {"of hidden.txt": b"content"}
    assert SECRET.encode() not in clean


def test_members_whose_names_are_alike_without_secrets_have_numbers(tmp_path: Path) -> None:
    names = [f"a/{SECRET}.txt", f"a/%{ord(SECRET[0]):x}{SECRET[1:]}.txt", "a/b.txt"]
    left = read_members(
        hidden_bytes(tmp_path, a_zip({name: name[:1].encode() for name in names}), SECRET)
    )
    assert list(left) == ["a/hidden.txt", "a/hidden-2.txt", "a/b.txt"]


def test_what_lies_outside_of_members_goes(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.txt", b"content")
        archive.start_dir = whole.write(SECRET.encode()) + archive.start_dir
        archive.writestr("b.txt", b"more")
    clean = hidden_bytes(tmp_path, whole.getvalue(), SECRET)
    assert SECRET.encode() not in clean
    assert read_members(clean) == {"a.txt": b"content", "b.txt": b"more"}


def test_fields_that_no_reader_needs_go(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        member = zipfile.ZipInfo("a.txt")
        member.extra = struct.pack("<HH", 0x7777, len(SECRET)) + SECRET.encode()
        archive.writestr(member, b"content")
    clean = hidden_bytes(tmp_path, whole.getvalue(), SECRET)
    assert SECRET.encode() not in clean
    assert read_members(clean) == {"a.txt": b"content"}


def test_a_picture_with_a_secret_beside_its_pixels_is_left_out(tmp_path: Path) -> None:
    archive = a_zip({"a.jpeg": PICTURE + SECRET.encode(), "b.jpeg": PICTURE})
    assert read_members(hidden_bytes(tmp_path, archive, SECRET)) == {"b.jpeg": PICTURE}


def test_a_member_that_is_called_by_its_hash_is_called_by_its_new_one(tmp_path: Path) -> None:
    content = f"<p>{SECRET}</p>".encode()
    now = content.replace(SECRET.encode(), HIDDEN.encode())
    was, is_now = by_hash(content), by_hash(now)
    network = f'{{"_file":"{was}","same":"src/{"0" * 40}.ts"}}\n'.encode()
    source = {f"src/{'0' * 40}.ts": SECRET.encode()}
    archive = a_zip({"0-trace.network": network, was: content, **source})
    assert read_members(hidden_bytes(tmp_path, archive, SECRET)) == {
        "0-trace.network": network.replace(was.encode(), is_now.encode()),
        is_now: now,
        f"src/{'0' * 40}.ts": HIDDEN.encode(),
    }


def test_names_are_known_before_they_are_written_whatever_comes_first(tmp_path: Path) -> None:
    content = f'{{"text":"{SECRET}"}}'.encode()
    now = content.replace(SECRET.encode(), HIDDEN.encode())
    was, is_now = by_hash(content, ".json"), by_hash(now, ".json")
    members = {name: f'{{"sha1":"{was}"}}\n'.encode() for name in ("0-trace.trace", "a.har")}
    left = read_members(hidden_bytes(tmp_path, a_zip({**members, was: content}), SECRET))
    changed = {name: text.replace(was.encode(), is_now.encode()) for name, text in members.items()}
    assert left == {**changed, is_now: now}


def test_members_that_become_equal_are_one(tmp_path: Path) -> None:
    contents = [secret.encode() for secret in ("s3cr3t-1", "s3cr3t-2")]
    archive = a_zip({by_hash(content): content for content in contents})
    left = read_members(hidden_bytes(tmp_path, archive, "s3cr3t-1", "s3cr3t-2"))
    assert left == {by_hash(HIDDEN.encode()): HIDDEN.encode()}


def test_an_archive_in_an_archive_is_cleaned(tmp_path: Path) -> None:
    inner = a_zip({"deep.txt": SECRET.encode(), "b.txt": b"b"})
    left = read_members(hidden_bytes(tmp_path, a_zip({"inner.zip": inner}), SECRET))
    assert read_members(left["inner.zip"]) == {"deep.txt": HIDDEN.encode(), "b.txt": b"b"}


def test_folders_times_and_modes_stay(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.mkdir("folder")
        member = zipfile.ZipInfo("folder/a.sh", (2026, 11, 22, 13, 30, 58))
        member.external_attr = 0o755 << 16
        archive.writestr(member, SECRET)
    with zipfile.ZipFile(io.BytesIO(hidden_bytes(tmp_path, whole.getvalue(), SECRET))) as clean:
        left = clean.getinfo("folder/a.sh")
        assert clean.getinfo("folder/").is_dir()
        assert (left.date_time, left.external_attr >> 16) == ((2026, 11, 22, 13, 30, 58), 0o755)


def packed_by(member: int, *, change: bytes, at: int) -> bytes:
    """An archive with a field of its list overwritten."""
    archive = bytearray(a_zip({"a.txt": b"a" * 500, "b.txt": b"b" * 500}))
    place = archive.index(b"PK\1\2") + at
    archive[place : place + len(change)] = change
    return bytes(archive)


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (packed_by(0, change=b"\1\0", at=8), "encrypted"),
        (packed_by(0, change=b"\x0e\0", at=10), "unusual way"),
        (packed_by(0, change=b"\0\0\0\0", at=16), "not what the archive says"),
        (packed_by(0, change=b"\7\0\0\0", at=24), "not what the archive says"),
        (packed_by(0, change=b"/.txt", at=46), "leads out"),
        (packed_by(0, change=b"b.txt", at=46), "same name"),
        (packed_by(0, change=b"\xff\xff\xff\x7f", at=42), "broken"),
        (packed_by(0, change=b"\xff\0\0\0", at=20), "overlapping"),
        (a_zip({"a.txt": b"a"})[:-9], "broken"),
        (a_zip({"../a.txt": b"a"}), "leads out"),
        (a_zip({"C:a.txt": b"a"}), "leads out"),
    ],
)
def test_an_archive_that_misleads_does_not_leave(tmp_path: Path, archive: bytes, why: str) -> None:
    with pytest.raises(UnsearchableFileError, match=why):
        hidden(tmp_path, archive, SECRET)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (Bounds(unpacked_bytes=1000), "unpacks to over 1000 bytes"),
        (Bounds(members=1), "over 1 members"),
        (Bounds(directory_bytes=50), "members"),
    ],
)
def test_an_archive_beyond_the_bounds_does_not_leave(
    tmp_path: Path, bounds: Bounds, why: str
) -> None:
    archive = a_zip({"a.txt": b"a" * 1001, "b.zip": a_zip({"c.txt": b"c"})})
    with pytest.raises(UnsearchableFileError, match=why):
        hidden(tmp_path, archive, SECRET, bounds=bounds)


def test_a_member_that_is_nested_too_deep_leaves_the_archive_and_the_rest_stays(
    tmp_path: Path,
) -> None:
    inner = a_zip({"c.txt": b"c"})
    embedded = b'{"text":"' + base64.b64encode(a_zip({"inner.zip": inner})) + b'"}'
    archive = a_zip({"a.txt": SECRET.encode(), "b.zip": inner, "c.txt": embedded})
    left = hidden(tmp_path, archive, SECRET, bounds=Bounds(depth=1))
    assert read_members(left.file.path.read_bytes()) == {"a.txt": HIDDEN.encode()}
    assert len(left.left_out) == 1
    assert "2 x file that cannot be searched" in left.left_out[0]


def test_a_member_that_unpacks_to_far_more_than_it_is_does_not_leave(tmp_path: Path) -> None:
    archive = a_zip({"a.txt": bytes(70 << 20)})
    with pytest.raises(UnsearchableFileError, match="400 times"):
        hidden(tmp_path, archive, SECRET)


def test_a_wide_archive_is_read(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with (
        zipfile.ZipFile(whole, "w") as archive,
        archive.open("a.txt", "w", force_zip64=True) as member,
    ):
        member.write(SECRET.encode())
    assert read_members(hidden_bytes(tmp_path, whole.getvalue(), SECRET)) == {
        "a.txt": HIDDEN.encode()
    }


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"%PDF-1.7", "a PDF file"),
        (b"\x1f\x8b\x08broken", "broken gzip"),
        (b"PK\3\4broken", "broken zip"),
    ],
)
def test_a_member_that_cannot_be_searched_is_left_out_and_told(
    tmp_path: Path, content: bytes, why: str
) -> None:
    found = hidden(tmp_path, a_zip({"a": content, "b": b"b"}), SECRET)
    assert read_members(found.file.path.read_bytes()) == {"b": b"b"}
    (told,) = found.left_out
    assert told.startswith("1 x file that cannot be searched: it is ")
    assert why in told
