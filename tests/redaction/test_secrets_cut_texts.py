"""A text that was cut says so."""

from redaction.policy import cut


def test_a_text_that_is_cut_ends_with_the_sign_of_that() -> None:
    assert cut("abcd", 4) == "abcd"
    assert cut("abcde", 4) == "abc…"
