"""`/ui`: every component in all its states, on one page."""

from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.web.page_routing import Pages
from service.web.states import State, draw_sparkline, draw_strip
from service.web.visit import Visit

_DAY: Final = (
    [State.PASSING] * 60
    + [State.DEGRADED] * 3
    + [State.PASSING] * 12
    + [State.MISSED] * 4
    + [State.FAILING] * 9
    + [State.PASSING] * 8
)
_LINE: Final = (88, 90, 85, 120, 96, None, None, 91, 88, 240, 230, 101, 92, 90)
_AGES_MS: Final = (0, 40_000, 720_000, 11_000_000, 400_000_000)
_DURATIONS_MS: Final = (None, 0.4, 412, 3_800, 12_400, 130_000, 11_100_000, 352_800_000)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The gallery."""
    return (pages.show("/ui", _show),)


async def _show(visit: Visit) -> Response:
    def read(connection: Connection) -> int:
        return visit.now_ms(connection)

    return visit.page(
        "gallery.html",
        now_ms=await visit.read(read),
        states=list(State),
        strip_day=draw_strip(_DAY, text="24 h: 96 runs, 9 failed, 4 missed"),
        short_strip=draw_strip(_DAY[50:80], text="30 runs"),
        sparkline_d=draw_sparkline(_LINE),
        ages_ms=_AGES_MS,
        durations_ms=_DURATIONS_MS,
    )
