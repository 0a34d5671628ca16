"""Badges as SVG; pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from xml.sax.saxutils import escape, quoteattr


class Style(StrEnum):
    """The badge's form."""

    FLAT = "flat"
    FLAT_SQUARE = "flat-square"
    PLASTIC = "plastic"
    FOR_THE_BADGE = "for-the-badge"


class Theme(StrEnum):
    """The colour of its left half."""

    DEFAULT = "default"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """What a badge says."""

    label: str
    message: str
    colour: str
    """Of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    height: int
    radius: int
    letter_width: float
    font_size: int
    is_shaded: bool = False
    is_capital: bool = False


_FORMS: Final = {
    Style.FLAT: _Form(height=20, radius=3, letter_width=6.6, font_size=11),
    Style.FLAT_SQUARE: _Form(height=20, radius=0, letter_width=6.6, font_size=11),
    Style.PLASTIC: _Form(height=18, radius=4, letter_width=6.6, font_size=11, is_shaded=True),
    Style.FOR_THE_BADGE: _Form(
        height=28, radius=0, letter_width=8.2, font_size=10, is_capital=True
    ),
}
_LABELS: Final = {
    Theme.DEFAULT: ("#555", "#fff"),
    Theme.DARK: ("#1b1f24", "#fff"),
    Theme.LIGHT: ("#e8e8e8", "#222"),
}
"""Background and letters."""
_MARGIN: Final = 6
_MOST_LETTERS: Final = 60
_SHADE: Final = (
    '<linearGradient id="s" x2="0" y2="100%"><stop offset="0" stop-color="#fff" stop-opacity=".3"/>'
    '<stop offset="1" stop-opacity=".3"/></linearGradient>'
)


def svg(badge: Badge, *, style: Style, theme: Theme) -> str:
    """The badge as a document of its own, with its words for those who do not see it."""
    form = _FORMS[style]
    label, message = _words(badge.label, form), _words(badge.message, form)
    left, right = _width(label, form), _width(message, form)
    background, letters = _LABELS[theme]
    size = f'width="{left + right}" height="{form.height}"'
    shade = f'<rect {size} fill="url(#s)"/>' if form.is_shaded else ""
    title = f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>'
        f"<title>{escape(title)}</title>{_SHADE if form.is_shaded else ''}"
        f'<clipPath id="c"><rect {size} rx="{form.radius}"/></clipPath><g clip-path="url(#c)">'
        f'<rect width="{left}" height="{form.height}" fill="{background}"/>'
        f'<rect x="{left}" width="{right}" height="{form.height}" fill="{badge.colour}"/>'
        f"{shade}</g>"
        f'<g font-family="Verdana,DejaVu Sans,sans-serif" font-size="{form.font_size}">'
        f"{_text(label, x=0, width=left, form=form, colour=letters)}"
        f"{_text(message, x=left, width=right, form=form, colour='#fff')}</g></svg>"
    )


def _words(text: str, form: _Form) -> str:
    cut = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
    plain = "".join(letter if letter.isprintable() else " " for letter in cut)
    return plain.upper() if form.is_capital else plain


def _width(text: str, form: _Form) -> int:
    return round(len(text) * form.letter_width) + 2 * _MARGIN


def _text(text: str, *, x: int, width: int, form: _Form, colour: str) -> str:
    """Drawn to this very width, whatever fonts its reader has."""
    base = form.height / 2 + form.font_size * 0.36
    return (
        f'<text x="{x + _MARGIN}" y="{base:.1f}" fill="{colour}"'
        f' textLength="{width - 2 * _MARGIN}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
