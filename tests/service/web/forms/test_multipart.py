"""Forms with a file, however their bytes arrive."""

from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.errors import InvalidError, TooLargeError
from service.web.forms.multipart import MOST_FIELDS_BYTES, read_multipart

_KIND = "multipart/form-data; boundary=----b0"
_MARK = b"------b0"


def a_form(file: bytes, fields: Sequence[tuple[str, str]] = (), *, name: str = "a.tgz") -> bytes:
    """What a browser sends: the fields, then the file."""
    heads = [
        _MARK + b'\r\ncontent-disposition: form-data; name="%b"\r\n\r\n' % key.encode()
        for key, _ in fields
    ]
    written = [
        head + value.encode() + b"\r\n" for head, (_, value) in zip(heads, fields, strict=True)
    ]
    head = b'\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n' % name.encode()
    kind = b"Content-Type: application/gzip\r\n\r\n"
    return b"".join(written) + _MARK + head + kind + file + b"\r\n" + _MARK + b"--\r\n"


async def pieces(body: bytes, sizes: Sequence[int]) -> AsyncIterator[bytes]:
    """A body in pieces of these sizes, again and again."""
    at, turn = 0, 0
    while at < len(body):
        size = sizes[turn % len(sizes)]
        yield body[at : at + size]
        at, turn = at + size, turn + 1


# What looks like an end is the hard part of it.
_BYTES = st.lists(
    st.sampled_from([b"\r", b"\n", b"-", b"\r\n--", _MARK, b"\r\n------b", b"x", b"\x00\xff"])
).map(b"".join)


def without_end(text: bytes) -> bytes:
    """The same without the mark that no file may have."""
    return text.replace(b"\r\n" + _MARK, b"")


@given(
    file=_BYTES.map(without_end).filter(lambda text: b"\r\n" + _MARK not in text),
    value=st.sampled_from(["", "a b", "\N{ZEBRA FACE}\r\nline", "--"]),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
async def test_a_file_arrives_as_it_was_sent_however_it_is_cut(
    file: bytes, value: str, sizes: list[int]
) -> None:
    body = a_form(file, [("csrf", value), ("csrf", "again")])

    form = await read_multipart(_KIND, pieces(body, sizes))

    assert form.pairs == (("csrf", value), ("csrf", "again"))
    assert form.file is not None
    found = [one async for one in form.file]
    assert b"".join(found) == file
    # No more is held than a piece and a mark.
    assert all(len(one) <= max(sizes) + len(_MARK) + 2 for one in found[1:])


async def test_a_form_in_which_no_file_was_chosen_has_none() -> None:
    form = await read_multipart(_KIND, pieces(a_form(b"", [("csrf", "1")], name=""), [7]))
    assert (form.pairs, form.file) == ((("csrf", "1"),), None)


@pytest.mark.parametrize("kept", [10, 60, 150])
async def test_a_form_that_ends_too_early_is_none(kept: int) -> None:
    body = a_form(b"content" * 10, [("csrf", "1")])[:kept]
    with pytest.raises(InvalidError, match="did not arrive whole"):
        await read_multipart(_KIND, pieces(body, [7]))


async def test_half_a_file_is_never_taken_for_a_whole_one() -> None:
    form = await read_multipart(_KIND, pieces(a_form(b"content" * 10)[:-30], [7]))
    assert form.file is not None
    with pytest.raises(InvalidError, match="did not arrive whole"):
        _ = [one async for one in form.file]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", a_form(b"x")),
        (_KIND, _MARK + b"\r\ncontent-disposition: form-data\r\n\r\nx\r\n" + _MARK + b"--\r\n"),
        (_KIND, a_form(b"x", [("a", "b")]).replace(b"b\r\n", b"\xff\r\n", 1)),
    ],
)
async def test_what_is_no_form_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(InvalidError, match="cannot be read"):
        await read_multipart(kind, pieces(body, [100]))


async def test_fields_have_a_limit_and_files_none() -> None:
    with pytest.raises(TooLargeError, match=str(MOST_FIELDS_BYTES)):
        await read_multipart(_KIND, pieces(a_form(b"x", [("a", "b" * MOST_FIELDS_BYTES)]), [9999]))
    form = await read_multipart(_KIND, pieces(a_form(b"x" * 3 * MOST_FIELDS_BYTES), [9999]))
    assert form.file is not None
    assert sum([len(one) async for one in form.file]) == 3 * MOST_FIELDS_BYTES
