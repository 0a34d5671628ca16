"""Colours of pages: read strictly, and always readable."""

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.status_pages.schemas import ThemeColors
from service.web.status_page.colours import (
    MARK_CONTRAST,
    TEXT_CONTRAST,
    Rgb,
    contrast,
    read_colour,
    write_theme,
)

FIELDS: Final = [field.alias or name for name, field in ThemeColors.model_fields.items()]
RULE: Final = re.compile(
    r":root\{(?:--[a-z-]+:light-dark\(#[0-9a-f]{6},#[0-9a-f]{6}\);)+\}\n", re.ASCII
)
HEX: Final = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")
HOSTILE: Final = (
    "url(https://evil.example/x)",
    "red;}body{display:none",
    "expression(alert(1))",
    "var(--page)",
    "#12345",
    "rgb(1,2)",
    "/**/red",
    "rgb(\uff11,2,3)",
    "\\72 ed",
    "",
)


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("#f00", (255, 0, 0)),
        (" #FF0000 ", (255, 0, 0)),
        ("#ff000080", (255, 127, 127)),
        ("rgb(10, 20, 30)", (10, 20, 30)),
        ("rgb(10 20 30 / 50%)", (132, 138, 142)),
        ("rgba(0,0,0,.5)", (128, 128, 128)),
        ("rgb(999,0,0)", (255, 0, 0)),
        ("hsl(120, 100%, 25%)", (0, 128, 0)),
        ("hsla(0deg, 100%, 50%, 1)", (255, 0, 0)),
        ("Navy", (0, 0, 128)),
    ],
)
def test_usual_spellings_of_colours_are_read(text: str, colour: Rgb) -> None:
    assert read_colour(text) == colour


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_colour_does_not_come_into_the_style_sheet(text: str) -> None:
    assert read_colour(text) is None
    sheet = write_theme({kind: dict.fromkeys(FIELDS, text) for kind in ("light", "dark")})
    assert RULE.fullmatch(sheet)
    assert not text or text not in sheet


@given(light=st.fixed_dictionaries(dict.fromkeys(FIELDS, HEX)), dark=st.text(max_size=30))
def test_whatever_colours_a_page_has_its_text_can_be_read(light: dict[str, str], dark: str) -> None:
    sheet = write_theme({"light": light, "dark": dict.fromkeys(FIELDS, dark)})
    assert RULE.fullmatch(sheet)
    for kind in (0, 1):
        found = {
            name: read(colours.split(",")[kind])
            for name, colours in re.findall(r"--([a-z-]+):light-dark\(([^)]+)\)", sheet)
        }
        texts = {name for name in found if name.endswith("text")} | {"text-quiet", "title", "link"}
        for name in texts - {"head-text", "button-text"}:
            assert_least(found, name, ("page", "raised"), TEXT_CONTRAST)
        for name in ("head-text", "head-link"):
            assert_least(found, name, ("head",), TEXT_CONTRAST)
        assert_least(found, "button-text", ("button",), TEXT_CONTRAST)
        for name in ("passing", "degraded", "failing"):
            assert_least(found, name, ("page", "raised"), MARK_CONTRAST)


def read(text: str) -> Rgb:
    """A colour that we wrote."""
    found = read_colour(text)
    assert found is not None
    return found


def assert_least(found: dict[str, Rgb], name: str, grounds: tuple[str, ...], least: float) -> None:
    """It stands out, or nothing would stand out better from both a light and a dark ground."""
    reached = min(contrast(found[name], found[ground]) for ground in grounds)
    best = max(
        min(contrast(end, found[ground]) for ground in grounds)
        for end in ((0, 0, 0), (255, 255, 255))
    )
    assert reached >= min(least, best), name
