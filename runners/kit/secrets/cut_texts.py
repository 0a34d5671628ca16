"""Texts cut to size, such that what is left of a secret at the cut is found. Pure."""

from typing import Final

CUT_SIGN: Final = "…"
"""Ends what was cut: before it a secret's beginning is looked for, as no whole one is there."""


def cut(text: str, most_chars: int) -> str:
    """The text, or its beginning with the sign that it was cut."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}{CUT_SIGN}"
