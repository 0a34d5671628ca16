"""Small texts are cleaned several at once, and lie in the archive as if it had been one by one."""

import struct
from pathlib import Path

import pytest

from redaction.archives.limits import UnsearchableFileError
from redaction.archives.zip import LOADED_BYTES
from tests.builders.archives import a_zip, by_hash, hidden, lines, read_members

SECRET = "hunter-two-and-three"


def test_texts_of_all_sizes_are_clean_in_the_order_that_they_had(tmp_path: Path) -> None:
    sizes = [10, LOADED_BYTES + 9, 300, LOADED_BYTES - 9, 40, 1 << 20, 5]
    texts = {
        f"{number}.txt": (b"x" * size + b"\n" + SECRET.encode() * (number % 2))
        for number, size in enumerate(sizes * 3)
    }
    left = hidden(tmp_path, a_zip(texts), SECRET)
    clean = read_members(left.file.path.read_bytes())
    assert list(clean) == list(texts)
    assert left.replacements == len(texts) // 2
    assert clean == {
        name: text.replace(SECRET.encode(), b"*********") for name, text in texts.items()
    }


def test_texts_that_become_alike_are_one_and_are_called_by_its_hash(tmp_path: Path) -> None:
    pages = [f"<p>{way}</p>".encode() for way in (SECRET, SECRET.replace("-", "%2D"), "none")]
    events = lines(*({"sha1": by_hash(page)} for page in pages))
    members = {**{by_hash(page): page for page in pages}, "0-trace.trace": events}
    left = hidden(tmp_path, a_zip(members), SECRET)
    clean = read_members(left.file.path.read_bytes())
    page = b"<p>*********</p>"
    now = [by_hash(page), by_hash(page), by_hash(pages[2])]
    assert clean == {
        by_hash(page): page,
        by_hash(pages[2]): pages[2],
        "0-trace.trace": lines(*({"sha1": name} for name in now)),
    }


def test_a_text_that_is_not_what_the_archive_says_does_not_leave(tmp_path: Path) -> None:
    content = b"it is " + SECRET.encode()
    whole = a_zip({"a.txt": b"a", "b.txt": content})
    listed = struct.pack("<I", len(content))
    broken = whole.replace(listed, struct.pack("<I", len(content) - 1))
    with pytest.raises(UnsearchableFileError, match="not what the archive says"):
        hidden(tmp_path, broken, SECRET)
