"""`/ui`: every component in all its states, on one page."""

from typing import Final, Literal

from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.http.schema import RequestModel
from service.web.forms.controls import Control, build, place_problems
from service.web.forms.field_schema import read_fields
from service.web.forms.form_state import express
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


class _Row(RequestModel):
    key: str = Field(description="Its name.")
    value: str = ""
    locked: bool = False


class _Object(RequestModel):
    failing_runs: int = Field(default=2, ge=1, le=5, description="How many runs in a row.")


class _Fields(RequestModel):
    """Every kind of field that forms have."""

    url: str = Field(description="Where the request goes; `{{NAME}}` is replaced.")
    max_response_time: float | None = Field(default=5000, description="Null: it never fails.")
    method: Literal["GET", "POST", "PUT", "HEAD", "DELETE", "PATCH"] = "GET"
    ip_family: Literal["IPv4", "IPv6"] = "IPv4"
    browsers: list[Literal["chromium", "firefox", "webkit"]]
    tags: list[str]
    muted: bool = Field(default=False, description="Whether alerts are off; it still runs.")
    script: str = "expect(1).toBe(1)"
    headers: list[_Row]
    retry_strategy: _Object | None = Field(default=None, description="Null: none.")
    starts_at: str = Field(json_schema_extra={"format": "date-time"})
    playwright_config: dict[str, int]


_FILLED: Final = {
    "url": "htp://shop",
    "browsers": ["webkit"],
    "tags": ["shop", "production"],
    "headers": [{"key": "accept", "value": "*/*"}],
    "retryStrategy": {"failingRuns": 2},
    "startsAt": "2026-11-27T03:00:00Z",
    "playwrightConfig": {"timeout": 1000},
}


def _draw_fields() -> tuple[Control, ...]:
    root = read_fields(_Fields)
    state = express(root, _FILLED)
    controls, _ = place_problems(
        build(root, state).inside, {"url": "URL must begin with https://."}
    )
    return controls


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
        controls=_draw_fields(),
    )
