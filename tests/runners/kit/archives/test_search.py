"""One look at a block of JSON tells what separate looks for secrets and for hints tell."""

import base64

import pytest

from runners.kit.archives.search import Search

SECRET = 'p@$$ w/ord"9 hunter'
SPLIT = b'{"type":"frame-snapshot","html":["P","p@$$ w",["B","/ord"]]}\n'
COOKIE = b'{"name":"Cookie","value":"theme=dark"}\n'
PLAIN = b'{"type":"log","message":"nothing at all"}\n'
ENCODED = b'{"value":"%s"}\n' % base64.b64encode(SECRET.encode())
ESCAPED = b'{"value":"%s"}\n' % b"".join(b"%%%02x" % byte for byte in SECRET.encode())
AFTER_HINT = b'{"a":"authorization: %s"}\n' % ESCAPED[10:-3]


@pytest.mark.parametrize(
    "lines",
    [
        (PLAIN,),
        (PLAIN, COOKIE, PLAIN),
        (SPLIT, PLAIN),
        (ENCODED, PLAIN, ESCAPED),
        (AFTER_HINT, COOKIE, ENCODED),
        (PLAIN, b'{"text":"p@$$ w/ord\\"9 hunter"}\n', SPLIT),
        (ESCAPED, COOKIE) * 50,
        (COOKIE * 70,),
    ],
)
def test_one_look_finds_what_separate_looks_find(lines: tuple[bytes, ...]) -> None:
    block, search = b"".join(lines), Search((SECRET,))
    seen = search.seen_in(block)
    assert seen.covers == search.pattern.seen_in(block)
    assert seen.is_hinted_at is search.is_hinted_at(block, is_json=True)


def test_a_hint_at_a_split_text_counts_in_snapshots_alone() -> None:
    other = SPLIT.replace(b"frame-snapshot", b"before")
    assert Search((SECRET,)).seen_in(SPLIT + PLAIN).is_hinted_at
    assert not Search((SECRET,)).seen_in(other + PLAIN).is_hinted_at
