"""What keys type is read as the harness reads it."""

import pytest

from redaction.trace.typed import BACKSPACE, letter_of


@pytest.mark.parametrize(
    ("key", "bare", "shifted"),
    [
        ("a", "a", "a"),
        ("+", "+", "+"),
        ("KeyA", "a", "A"),
        ("Shift+KeyA", "A", "A"),
        ("Shift+a", "a", "a"),
        ("Shift++", "+", "+"),
        ("Digit0", "0", ")"),
        ("Digit9", "9", "("),
        ("Minus", "-", "_"),
        ("Quote", "'", '"'),
        ("Numpad5", "", "5"),
        ("NumpadDecimal", "", "."),
        ("NumpadAdd", "+", "+"),
        ("Tab", "\t", ""),
        ("Backspace", BACKSPACE, BACKSPACE),
        ("Control+KeyA", "", ""),
        ("Escape", "", ""),
    ],
)
def test_a_key_types_what_it_says(key: str, bare: str, shifted: str) -> None:
    assert letter_of(key, is_shifted=False) == bare
    assert letter_of(key, is_shifted=True) == shifted
