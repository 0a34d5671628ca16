"""A look for parts and signs finds what a search of the whole text finds, wherever that stands."""

from collections.abc import Iterable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from redaction.compiled import compile_forms, find_overlapping
from redaction.decoders import Kind, decode_views
from redaction.forms import text_forms, whole_forms
from redaction.matcher import DEEPEST, SecretMatcher, Span, merge_spans
from redaction.replacer import BLOCK_BYTES, OVERLAP_BYTES, RedactingStream, SecretPattern
from tests.builders.encodings import ENCODINGS, encoded, fits

SECRETS = ('p@$$ w/ö"rd&<x>%+=', "hunter22-token", "\\!ab\\c:d9")
PATTERN = SecretPattern(SECRETS)
SEARCH = SecretMatcher(SECRETS)
FORMS = compile_forms(
    form for secret in SECRETS for form in (*text_forms(secret), *whole_forms(secret))
)
WINDOW_BYTES = 1 << 15
ESCAPE_BYTES = 64
"""An escape that a cover begins in goes with it."""
FILLERS = st.sampled_from(
    [
        b"some words, and more. ",
        b"%41%2f%252F ",
        rb"\u0041\n\\",
        b"&#65;&amp;",
        b"QUJDREVG",
        b"61 62 ",
    ]
)
CHAINS = st.lists(st.sampled_from(ENCODINGS), max_size=2)


@st.composite
def hits(draw: st.DrawFn) -> bytes:
    """A secret in some encodings, with what may stand beside it."""
    secret, chain = draw(st.sampled_from(SECRETS)), draw(CHAINS)
    text = (
        f"{draw(st.sampled_from(['', ' ', 'xy']))}{secret}{draw(st.sampled_from(['', ' ', 'xy']))}"
    )
    return encoded(text, chain) if fits(chain, secret) else text.encode()


def filled(filler: bytes, size: int) -> bytes:
    return (filler * (size // len(filler) + 1))[:size]


def found_plainly(text: bytes, deeper: int = DEEPEST) -> Iterator[Span]:
    """Where forms stand, in the text and in what the whole of it reads decoded."""
    for expression in FORMS:
        yield from (Span(*span, Kind.TEXT) for span in find_overlapping(expression, text))
    for view in decode_views(text) if deeper else ():
        for cover in merge_spans(found_plainly(view.content, deeper - 1)):
            yield Span(*view.locate(cover.start, cover.end - 1), Kind.TEXT)


def within(covers: Iterable[Span], *, before: int = 0) -> set[int]:
    """Each byte that is covered, and so many before each cover."""
    return {at for cover in covers for at in range(cover.start - before, cover.end)}


@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(st.tuples(FILLERS, st.integers(0, 300), hits()), min_size=1, max_size=3),
    before=st.tuples(FILLERS, st.sampled_from([0, 1, 2]), st.integers(-200, 200)),
)
def test_parts_and_signs_tell_of_all_that_a_whole_search_finds(
    parts: list[tuple[bytes, int, bytes]], before: tuple[bytes, int, int]
) -> None:
    filler, windows, shift = before
    text = filled(filler, max(0, windows * WINDOW_BYTES // 8 + shift))
    text += b"".join(filled(one, size) + hit for one, size, hit in parts)
    plainly, found = merge_spans(found_plainly(text)), within(SEARCH.find(text))
    assert within(plainly) <= found
    assert found <= within(plainly, before=ESCAPE_BYTES)


@settings(max_examples=15, deadline=None)
@given(
    ends=st.lists(
        st.tuples(FILLERS, st.sampled_from([0, OVERLAP_BYTES]), st.integers(-200, 200), hits()),
        min_size=1,
        max_size=2,
    ),
    sizes=st.lists(st.integers(1, BLOCK_BYTES), max_size=8),
)
def test_the_edges_of_blocks_and_chunks_change_nothing(
    ends: list[tuple[bytes, int, int, bytes]], sizes: list[int]
) -> None:
    data = b""
    for number, (filler, overlap, shift, hit) in enumerate(ends, start=1):
        dense = filled(filler, 400)
        data += b"\n" * (number * BLOCK_BYTES + overlap + shift - len(data) - len(dense)) + dense
        data += hit + dense
    stream, clean, at = RedactingStream(PATTERN), b"", 0
    for size in (*sizes, len(data)):
        clean, at = clean + stream.feed(data[at : at + size]), at + size
    assert clean + stream.finish() == PATTERN.hide(data)[0]
    assert stream.replacements == len(SEARCH.find(data))
