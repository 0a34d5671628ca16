"""`/v1/badges`: the status of a check as a picture, for pages that show it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final
from xml.sax.saxutils import escape, quoteattr

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.groups import actions as groups
from service.http.auth import CallerDep, MaybeCallerDep
from service.http.dependencies import BackendDep
from service.http.routing import keyed_operations, refusals
from service.http.schema import NO_NUL
from service.results import actions as results
from service.results.model import RunStatus, Standing


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
    """The background of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StyleMetrics:
    height: int
    radius: int
    letter_width: float
    font_size: int
    is_shaded: bool = False
    is_capital: bool = False


_FORMS: Final = {
    Style.FLAT: _StyleMetrics(height=20, radius=3, letter_width=6.6, font_size=11),
    Style.FLAT_SQUARE: _StyleMetrics(height=20, radius=0, letter_width=6.6, font_size=11),
    Style.PLASTIC: _StyleMetrics(
        height=18, radius=4, letter_width=6.6, font_size=11, is_shaded=True
    ),
    Style.FOR_THE_BADGE: _StyleMetrics(
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


def render_svg(badge: Badge, *, style: Style, theme: Theme) -> str:
    """The badge as a document of its own, with its words for those who do not see it."""
    form = _FORMS[style]
    label, message = _clip_text(badge.label, form), _clip_text(badge.message, form)
    left, right = _measure_px(label, form), _measure_px(message, form)
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
        f"{_render_text(label, x=0, width=left, form=form, colour=letters)}"
        f"{_render_text(message, x=left, width=right, form=form, colour='#fff')}</g></svg>"
    )


def _clip_text(text: str, form: _StyleMetrics) -> str:
    cut = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
    plain = "".join(letter if letter.isprintable() else " " for letter in cut)
    return plain.upper() if form.is_capital else plain


def _measure_px(text: str, form: _StyleMetrics) -> int:
    return round(len(text) * form.letter_width) + 2 * _MARGIN


def _render_text(text: str, *, x: int, width: int, form: _StyleMetrics, colour: str) -> str:
    """Drawn to this very width, whatever fonts its reader has."""
    base = form.height / 2 + form.font_size * 0.36
    return (
        f'<text x="{x + _MARGIN}" y="{base:.1f}" fill="{colour}"'
        f' textLength="{width - 2 * _MARGIN}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


router = keyed_operations("Badges", prefix="/v1/badges")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
_OF_CHECK: Final = "/checks/{checkId}"
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
_OF_GROUP: Final = "/groups/{groupId}"
_SVG: Final = "image/svg+xml"
_PICTURE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The badge.", "content": {_SVG: {"schema": {"type": "string"}}}},
    **refusals(404),
}


class _BadgeOptions:
    """How the badge is to look."""

    def __init__(
        self,
        *,
        style: Style = Style.FLAT,
        theme: Theme = Theme.DEFAULT,
        with_time: Annotated[
            bool, Query(alias="responseTime", description="Add the newest response time.")
        ] = False,
    ) -> None:
        self.style, self.theme, self.with_time = style, theme, with_time

    def answer(self, said: Badge) -> Response:
        """The picture."""
        picture = render_svg(said, style=self.style, theme=self.theme)
        headers = {"cache-control": "no-cache", "content-security-policy": "sandbox"}
        return Response(picture, media_type=_SVG, headers=headers)


LookDep = Annotated[_BadgeOptions, Depends(_BadgeOptions)]


@router.get(_OF_CHECK, response_class=Response, responses=_PICTURE)
async def read_check_badge(
    check_id: CheckId, caller: MaybeCallerDep, backend: BackendDep, look: LookDep
) -> Response:
    """Draw the status of a check. With `BADGE_ACCESS=anyone` it needs no API key."""

    def query(connection: Connection) -> Badge:
        account_id = caller.account_id if caller else checks.find_owner(connection, check_id)
        row = checks.find(connection, account_id or "", check_id)
        newest = results.standings(connection, [check_id]).get(check_id)
        return render_badge(row.name, newest, with_time=look.with_time)

    return look.answer(await backend.database.read(query))


@router.get(_OF_GROUP, response_class=Response, responses=_PICTURE)
async def read_group_badge(
    group_id: GroupId, caller: CallerDep, backend: BackendDep, look: LookDep
) -> Response:
    """Draw the status of a check group: that of its worst check.

    It always needs an API key: a group's number can be guessed, and a check's id cannot.
    """

    def query(connection: Connection) -> Badge:
        account_id = caller.account_id
        group = groups.find(connection, account_id, group_id)
        members = checks.list_member_names(connection, account_id, group_id)
        newest = results.standings(connection, [member.id for member in members])
        return render_badge(group.name, find_worst(newest.values()), with_time=look.with_time)

    return look.answer(await backend.database.read(query))


_SAID: Final = {
    RunStatus.PASSED: ("passing", "#2a8a3e"),
    RunStatus.DEGRADED: ("degraded", "#b06f00"),
    RunStatus.FAILED: ("failing", "#c4342b"),
    RunStatus.TIMED_OUT: ("failing", "#c4342b"),
    RunStatus.MISSED: ("no result", "#777"),
    RunStatus.ERROR: ("no result", "#777"),
}

_WORST_LAST: Final = (
    *(RunStatus.PASSED, RunStatus.MISSED, RunStatus.ERROR, RunStatus.DEGRADED),
    *(RunStatus.TIMED_OUT, RunStatus.FAILED),
)


def render_badge(name: str, newest: Standing | None, *, with_time: bool) -> Badge:
    """The badge of a check with this name. `newest` is None where it has no result yet."""
    if newest is None:
        return Badge(label=name, message="no result", colour="#777")
    message, colour = _SAID[newest.status]
    if with_time and newest.response_time_ms is not None:
        message += f" {math.floor(newest.response_time_ms) or '<1'} ms"
    return Badge(label=name, message=message, colour=colour)


def find_worst(newest: Iterable[Standing]) -> Standing | None:
    """The result that a group is judged by. None: none of its checks has one."""
    return max(newest, key=lambda one: _WORST_LAST.index(one.status), default=None)
