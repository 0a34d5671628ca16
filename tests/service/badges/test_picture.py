from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.badges.api import Badge, Style, Theme, render_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(label: str = "Shop", message: str = "passing", **look: object) -> ET.Element:
    badge = Badge(label=label, message=message, colour="#2a8a3e")
    chosen = {"style": Style.FLAT, "theme": Theme.DEFAULT, **look}
    return ET.fromstring(render_svg(badge, **chosen))  # type: ignore[arg-type]


@given(st.text(max_size=100), st.text(max_size=20))
def test_whatever_a_check_is_called_its_badge_is_one_picture(label: str, message: str) -> None:
    found = drawn(label, message)
    assert {one.tag.removeprefix(SVG) for one in found.iter()} == {
        *("svg", "title", "clipPath", "rect", "g", "text"),
    }
    assert len(list(found.iter(f"{SVG}text"))) == 2


def test_a_name_that_is_markup_is_shown_as_it_is() -> None:
    name = "</text><script>alert(1)</script> & \"'"
    found = drawn(name)
    assert [one.text for one in found.iter(f"{SVG}text")] == [name, "passing"]
    assert found.get("aria-label") == f"{name}: passing"


@pytest.mark.parametrize(("letters", "shown"), [(60, 60), (61, 60)])
def test_a_long_name_is_cut(letters: int, shown: int) -> None:
    (label, _) = drawn("x" * letters).iter(f"{SVG}text")
    assert len(label.text or "") == shown
    assert (label.text or "").endswith("…") == (letters > 60)


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("theme", Theme)
def test_each_style_and_theme_is_a_picture(style: Style, theme: Theme) -> None:
    found = drawn(style=style, theme=theme)
    said = [one.text for one in found.iter(f"{SVG}text")]
    assert said == (["SHOP", "PASSING"] if style is Style.FOR_THE_BADGE else ["Shop", "passing"])
