"""The colours of a page: only what is a colour, and always readable.

Whatever a page's owner wrote, nothing of it goes into the style sheet but numbers that were read
from it.
"""

import colorsys
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Rgb = tuple[int, int, int]

TEXT_CONTRAST: Final = 4.5
MARK_CONTRAST: Final = 3.0
_STEPS: Final = 20
_SHORT: Final = 4
_HEX: Final = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_NUMBER: Final = r"([0-9]{1,3}(?:\.[0-9]{1,6})?)"
_SEPARATOR: Final = r"(?:\s*,\s*|\s+)"
_ALPHA: Final = r"(?:\s*[,/]\s*([0-9]{0,3}(?:\.[0-9]{1,6})?%?))?"
_RGB: Final = re.compile(
    rf"rgba?\(\s*{_NUMBER}{_SEPARATOR}{_NUMBER}{_SEPARATOR}{_NUMBER}{_ALPHA}\s*\)"
)
_HSL: Final = re.compile(
    rf"hsla?\(\s*{_NUMBER}(?:deg)?{_SEPARATOR}{_NUMBER}%{_SEPARATOR}{_NUMBER}%{_ALPHA}\s*\)"
)
_NAMES: Final[Mapping[str, str]] = {
    "aqua": "#00ffff",
    "black": "#000000",
    "blue": "#0000ff",
    "fuchsia": "#ff00ff",
    "gray": "#808080",
    "green": "#008000",
    "grey": "#808080",
    "lime": "#00ff00",
    "maroon": "#800000",
    "navy": "#000080",
    "olive": "#808000",
    "orange": "#ffa500",
    "purple": "#800080",
    "red": "#ff0000",
    "silver": "#c0c0c0",
    "teal": "#008080",
    "white": "#ffffff",
    "yellow": "#ffff00",
}

_WHITE: Final[Rgb] = (255, 255, 255)
_BLACK: Final[Rgb] = (0, 0, 0)
_STATES: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {"passing": "#3f9b5c", "degraded": "#bd7f1c", "failing": "#c73a36"},
    "dark": {"passing": "#5fbb7b", "degraded": "#e5b14d", "failing": "#ee6a60"},
}
_USUAL: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {"back": "#ffffff", "card": "#ffffff", "text": "#1d232d", "link": "#2257a8"},
    "dark": {"back": "#0d1117", "card": "#141920", "text": "#e6e9ee", "link": "#8fbdf5"},
}


def read_colour(text: str, *, behind: Rgb = _WHITE) -> Rgb | None:
    """A colour as hex, `rgb()`, `hsl()` or a basic name. None: it is none of these.

    What is translucent is mixed with what is behind it.
    """
    text = text.strip().lower()
    text = _NAMES.get(text, text)
    if _HEX.fullmatch(text):
        return _read_hex(text[1:], behind)
    if found := _RGB.fullmatch(text):
        red, green, blue = (min(round(float(one)), 255) for one in found.groups()[:3])
        return _mix((red, green, blue), behind, _read_alpha(found.group(4)))
    if found := _HSL.fullmatch(text):
        hue, saturation, light = (float(one) for one in found.groups()[:3])
        parts = colorsys.hls_to_rgb(
            hue % 360 / 360, min(light, 100) / 100, min(saturation, 100) / 100
        )
        red, green, blue = (round(one * 255) for one in parts)
        return _mix((red, green, blue), behind, _read_alpha(found.group(4)))
    return None


def _read_hex(digits: str, behind: Rgb) -> Rgb:
    if len(digits) <= _SHORT:
        digits = "".join(one * 2 for one in digits)
    red, green, blue, alpha = (int(f"{digits}ff"[at : at + 2], 16) for at in (0, 2, 4, 6))
    return _mix((red, green, blue), behind, alpha / 255)


def _read_alpha(text: str | None) -> float:
    if not text or text in ("%", "."):
        return 1.0
    value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    return min(value, 1.0)


def _mix(front: Rgb, behind: Rgb, share: float) -> Rgb:
    red, green, blue = (
        round(one * share + other * (1 - share)) for one, other in zip(front, behind, strict=True)
    )
    return red, green, blue


def contrast(one: Rgb, other: Rgb) -> float:
    """How well two colours are told apart, 1 to 21 (WCAG 2)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Rgb) -> float:
    red, green, blue = (_linear(one / 255) for one in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def make_readable(colour: Rgb, *backs: Rgb, least: float = TEXT_CONTRAST) -> Rgb:
    """The colour, or the nearest one towards black or white that stands out from its grounds."""
    found = [
        mixed
        for end in (_BLACK, _WHITE)
        if (mixed := _approach(colour, end, backs, least)) is not None
    ]
    if found:
        return min(found, key=lambda mixed: _distance(mixed, colour))
    return max((_BLACK, _WHITE), key=lambda end: _least_contrast(end, backs))


def _approach(colour: Rgb, end: Rgb, backs: tuple[Rgb, ...], least: float) -> Rgb | None:
    for step in range(_STEPS + 1):
        mixed = _mix(end, colour, step / _STEPS)
        if _least_contrast(mixed, backs) >= least:
            return mixed
    return None


def _least_contrast(colour: Rgb, backs: tuple[Rgb, ...]) -> float:
    return min(contrast(colour, back) for back in backs)


def _distance(one: Rgb, other: Rgb) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def write_theme(colours: Mapping[str, Any] | None) -> str:
    """The rules that replace the usual colours; empty where a page has none of its own."""
    if not colours:
        return ""
    light = _theme(colours.get("light") or {}, "light")
    dark = _theme(colours.get("dark") or {}, "dark")
    lines = [f"--{name}:light-dark({light[name]},{dark[name]});" for name in light]
    return f":root{{{''.join(lines)}}}\n"


def _theme(sent: Mapping[str, str], kind: str) -> dict[str, str]:
    usual = {name: _usual(text) for name, text in _USUAL[kind].items()}

    def pick(name: str, otherwise: Rgb, behind: Rgb) -> Rgb:
        return read_colour(str(sent.get(name, "")), behind=behind) or otherwise

    back = pick("bodyBackgroundColor", usual["back"], _WHITE if kind == "light" else _BLACK)
    card = pick("cardBackgroundColor", back, back)
    head = pick("headerBackgroundColor", back, back)
    button = pick("primaryButtonBackgroundColor", usual["link"], card)
    return _write(kind, usual, pick, (back, card, head, button))


def _write(
    kind: str,
    usual: Mapping[str, Rgb],
    pick: Callable[[str, Rgb, Rgb], Rgb],
    grounds: tuple[Rgb, Rgb, Rgb, Rgb],
) -> dict[str, str]:
    back, card, head, button = grounds
    text = make_readable(pick("bodyFontColor", usual["text"], card), back, card)
    muted = _mix(text, card, 0.75)
    values = {
        "page": back,
        "raised": card,
        "head": head,
        "line-soft": pick("borderColor", _mix(text, card, 0.16), card),
        "line-firm": make_readable(_mix(text, card, 0.4), back, card, least=MARK_CONTRAST),
        "text": text,
        "text-quiet": make_readable(pick("bodyFontColorMuted", muted, card), back, card),
        "title": make_readable(pick("titleFontColor", text, back), back, card),
        "head-text": make_readable(pick("headerFontColor", text, head), head),
        "head-link": make_readable(pick("navigationFontColor", text, head), head),
        "link": make_readable(pick("linkFontColor", usual["link"], card), back, card),
        "focus": make_readable(usual["link"], back, card, head, least=MARK_CONTRAST),
        "button": button,
        "button-text": make_readable(pick("primaryButtonFontColor", back, button), button),
    }
    for name, hex_code in _STATES[kind].items():
        own = _usual(hex_code)
        values[name] = make_readable(own, back, card, least=MARK_CONTRAST)
        values[f"{name}-text"] = make_readable(own, back, card)
    return {name: _spell(colour) for name, colour in values.items()}


def _usual(hex_code: str) -> Rgb:
    return _read_hex(hex_code[1:], _WHITE)


def _spell(colour: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
