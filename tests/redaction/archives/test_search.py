"""One look at a block of JSON tells what separate looks for secrets and for hints tell."""

import base64
import gzip

import pytest

from redaction.archives.search import Search

SECRET = 'p@$$ w/ord"9 hunter'
SPLIT = b'{"type":"frame-snapshot","html":["P","p@$$ w",["B","/ord"]]}\n'
COOKIE = b'{"name":"Cookie","value":"theme=dark"}\n'
PLAIN = b'{"type":"log","message":"nothing at all"}\n'
ENCODED = b'{"value":"%s"}\n' % base64.b64encode(SECRET.encode())
ESCAPED = b'{"value":"%s"}\n' % b"".join(b"%%%02x" % byte for byte in SECRET.encode())
PACKED = b'{"value":"%s"}\n' % base64.b64encode(gzip.compress(SECRET.encode() * 3))
"""A hint within what looks like base64."""
AFTER_HINT = b'{"a":"authorization: %s"}\n' % ESCAPED[10:-3]


@pytest.mark.parametrize(
    "lines",
    [
        (PLAIN,),
        (PLAIN, COOKIE, PLAIN),
        (SPLIT, PLAIN),
        (ENCODED, PLAIN, ESCAPED),
        (AFTER_HINT, COOKIE, ENCODED),
        (PACKED, PLAIN),
        (ENCODED, PACKED, b'{"value":"%s"}\n' % SECRET.encode().hex().encode()),
        (PLAIN, b'{"text":"p@$$ w/ord\\"9 hunter"}\n', SPLIT),
        (ESCAPED, COOKIE) * 50,
        (COOKIE * 70,),
    ],
)
def test_one_look_finds_what_separate_looks_find(lines: tuple[bytes, ...]) -> None:
    block, search = b"".join(lines), Search((SECRET,))
    seen = search.find_in_block(block)
    assert seen.spans == search.pattern.find(block)
    assert seen.has_hint is search.has_hint(block, is_json=True)


def test_a_hint_at_a_split_text_counts_in_snapshots_alone() -> None:
    other = SPLIT.replace(b"frame-snapshot", b"before")
    assert Search((SECRET,)).find_in_block(SPLIT + PLAIN).has_hint
    assert not Search((SECRET,)).find_in_block(other + PLAIN).has_hint


def test_what_was_let_go_of_finds_the_same_again() -> None:
    search, page = Search((SECRET,)), b"<p>p@$$ w<b>/ord</b></p>"
    json = SPLIT + ENCODED
    assert search.has_hint(page, is_json=False)
    hidden, seen = search.in_html.hide(page), search.find_in_block(json)
    assert search.free_html()
    assert not search.free_html()
    search.pattern.free_hint()
    assert search.has_hint(page, is_json=False)
    assert (search.in_html.hide(page), search.find_in_block(json)) == (hidden, seen)
