"""`/v1/check-alerts` and what belongs to it: alerts, and previews of alert settings."""

from typing import Annotated, Final

from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.alerting import store
from service.alerting.model import AlertFilter, StoredAlert
from service.alerting.preview import preview
from service.alerting.views import (
    CheckAlertShown,
    LocationAlertShown,
    PreviewShown,
    PreviewWanted,
    render,
    render_location,
)
from service.checks import actions as checks
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError
from service.http.responses import PageDep, page_of
from service.http.routing import answers, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.http.times import query_window_ms

router = keyed_operations("Alerts")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
_WINDOW_MS: Final = 6 * 3_600_000


class _AlertWindow:
    """The part of the past of which alerts are listed."""

    def __init__(
        self,
        from_: Annotated[
            str | None,
            Query(
                alias="from",
                description="Seconds since 1970, or ISO 8601; inclusive. Left out: 6 hours before"
                " `to`.",
            ),
        ] = None,
        to: Annotated[
            str | None,
            Query(
                description="Seconds since 1970, or ISO 8601; exclusive, and at most 6 hours after"
                " `from`. Left out: 6 hours after `from`, or now."
            ),
        ] = None,
    ) -> None:
        self._from_ms, self._to_ms = query_window_ms(("from", from_), ("to", to))
        if self._from_ms is not None and self._to_ms is not None:
            _require_short(self._from_ms, self._to_ms)

    def ends(self, now_ms: int) -> tuple[int, int]:
        """Both ends, in ms since 1970."""
        if self._from_ms is not None:
            return self._from_ms, self._to_ms or self._from_ms + _WINDOW_MS
        to_ms = now_ms + 1 if self._to_ms is None else self._to_ms
        return to_ms - _WINDOW_MS, to_ms


def _require_short(from_ms: int, to_ms: int) -> None:
    if to_ms - from_ms > _WINDOW_MS:
        raise InvalidError(
            '"from" and "to" are more than 6 hours apart; ask for shorter windows.',
            keys=("from", "to"),
            source="query",
        )


WindowDep = Annotated[_AlertWindow, Depends(_AlertWindow)]


@router.get(
    "/v1/check-alerts",
    responses=page_of(list[CheckAlertShown], "A page of alerts, newest first."),
)
async def list_check_alerts(
    caller: CallerDep, backend: BackendDep, page: PageDep, window: WindowDep
) -> Response:
    """List the alerts of all checks."""

    def query(connection: Connection) -> tuple[StoredAlert, ...]:
        from_ms, to_ms = window.ends(backend.clock.now_ms(connection))
        wanted = AlertFilter(account_id=caller.account_id, from_ms=from_ms, to_ms=to_ms)
        return store.list_alerts(connection, wanted, limit=page.one_more, offset=page.offset)

    rows = await backend.database.read(query)
    return page.answer(rows, lambda row: render(row).model_dump(mode="json"))


@router.get(
    "/v1/check-alerts/{checkId}",
    responses=page_of(list[CheckAlertShown], "A page of alerts, newest first.", 404),
)
async def list_alerts_of_check(
    check_id: CheckId, caller: CallerDep, backend: BackendDep, page: PageDep, window: WindowDep
) -> Response:
    """List the alerts of a check."""

    def query(connection: Connection) -> tuple[StoredAlert, ...]:
        check = checks.find_name(connection, caller.account_id, check_id)
        from_ms, to_ms = window.ends(backend.clock.now_ms(connection))
        wanted = AlertFilter(
            account_id=caller.account_id, check_id=check.id, from_ms=from_ms, to_ms=to_ms
        )
        return store.list_alerts(connection, wanted, limit=page.one_more, offset=page.offset)

    rows = await backend.database.read(query)
    return page.answer(rows, lambda row: render(row).model_dump(mode="json"))


@router.get(
    "/v1/location-alerts",
    responses=page_of(list[LocationAlertShown], "A page of alerts, newest first."),
)
async def list_location_alerts(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List the alerts about private locations without agents; an addition of ours."""
    rows = await backend.database.read(
        lambda c: store.list_location_alerts(
            c, caller.account_id, limit=page.one_more, offset=page.offset
        )
    )
    return page.answer(rows, lambda row: render_location(row).model_dump(mode="json"))


@router.post(
    "/v1/alert-settings/preview",
    responses=answers(200, PreviewShown, "The alerts that there would have been.", 404),
)
async def preview_alert_settings(
    caller: CallerDep, backend: BackendDep, body: Annotated[PreviewWanted, Body()]
) -> Response:
    """Replay stored results through other alert settings; changes nothing. An addition of ours.

    The first result finds each check passing, and at most 50000 results of at most 30 days are
    replayed.
    """

    def query(connection: Connection) -> PreviewShown:
        now_ms = backend.clock.now_ms(connection)
        return preview(connection, caller.account_id, body, now_ms=now_ms)

    return json_model(await backend.database.read(query))
