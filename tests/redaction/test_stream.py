"""What comes in chunks is hidden as if it had come at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from redaction.replacer import BLOCK_BYTES, RedactingStream, SecretPattern
from tests.builders.encodings import ENCODINGS

SECRET = 'p@$$ w/ö"rd&<x>%+='
PATTERN = SecretPattern([SECRET, "rd&<x>%+= and more"])


def in_chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return [*chunks, data[at:]]


def streamed(chunks: list[bytes], pattern: SecretPattern = PATTERN) -> tuple[bytes, int]:
    stream = RedactingStream(pattern)
    clean = b"".join([*map(stream.feed, chunks), stream.finish()])
    return clean, stream.replacements


@settings(max_examples=25, deadline=None)
@given(
    shift=st.integers(0, 200),
    encoding=st.sampled_from(ENCODINGS),
    sizes=st.lists(st.integers(0, 2 * BLOCK_BYTES), max_size=6),
)
def test_the_chunks_change_nothing(shift: int, encoding: object, sizes: list[int]) -> None:
    assert encoding in ENCODINGS
    secret = next(known for known in ENCODINGS if known is encoding).encode(SECRET.encode())
    data = b"<" * (BLOCK_BYTES - shift) + secret + b">" * (2 * BLOCK_BYTES)
    clean, count = streamed(in_chunks(data, sizes))
    assert (clean, count) == PATTERN.hide(data)
    assert count >= 1
    assert secret not in clean
    assert clean.startswith(b"<" * (BLOCK_BYTES - shift - 1))
    assert clean.endswith(b">" * (2 * BLOCK_BYTES - 1))


def test_bytes_that_come_one_by_one_are_hidden_too() -> None:
    data = f"a {SECRET} b".encode()
    clean, count = streamed([bytes([byte]) for byte in data])
    assert (clean, count) == (b"a ********* b", 1)


def test_little_is_held() -> None:
    stream = RedactingStream(PATTERN)
    held = 0
    for _ in range(40):
        held += 100_000 - len(stream.feed(b"x" * 100_000))
        assert held <= BLOCK_BYTES + PATTERN.overlap_bytes + 100_000
    assert held == len(stream.finish())
