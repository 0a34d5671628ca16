"""One look finds a secret as it is and with its white space written in another way."""

import pytest

from redaction.scanner.needles import Needles

SPACED = "two words"


@pytest.mark.parametrize(
    ("secret", "view"),
    [
        ("hunter22", b"a hunter22 b"),
        ("two words", b"a two+words b"),
        ("two words", "a two\N{NO-BREAK SPACE}words b".encode()),
        ("two+words", b"a two+words b"),
        ("two+words", b"a two words b"),
        ("first\nsecond", b"a first\r\nsecond b"),
        ("déjà+vu", "a déjà+vu b".encode()),
        ("déjà+vu", "a déjà vu b".encode().decode("latin-1").encode()),
        ("sôleÂ", "a sôleÂ\N{NO-BREAK SPACE}b".encode("latin-1")),
        ("ends in\r", b"a ends in\r\n"),
        ('some"word', b'"a","some""word"'),
        ("some'word", b"VALUES ('some''word')"),
        ("some'word", rb"curl 'some'\''word'"),
        ("some'word", b"curl 'some'\"'\"'word'"),
    ],
)
@pytest.mark.parametrize("others", [(), (SPACED,)])
def test_a_secret_is_found_whatever_stands_for_its_white_space(
    secret: str, view: bytes, others: tuple[str, ...]
) -> None:
    assert Needles((secret, *others)).are_in(view)


@pytest.mark.parametrize("secret", ["hunter22", "two words", "déjà vu"])
@pytest.mark.parametrize("view", [b"", b"twowords", b"hunter 22", "deja vu é Ã©".encode()])
def test_what_is_no_secret_is_none(secret: str, view: bytes) -> None:
    assert not Needles((secret, SPACED)).are_in(view)
