"""Which alerts other settings would have led to: a small form, and what it comes to."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.alerting.model import UNLIMITED, AlertType
from service.checks import actions as checks
from service.http.times import query_time_ms
from service.web.alerts.alert_words import describe_alert
from service.web.page_routing import Pages
from service.web.visit import Visit

_SHOWN: Final = 20
RUNS: Final = (1, 2, 3, 4, 5)
MINUTES: Final = (5, 10, 15, 30)
REMINDERS: Final = (0, 1, 2, 3, 4, 5, UNLIMITED)
INTERVALS: Final = (1, 2, 3, 4, 5, 10, 15, 30)
SHARES: Final = (0, *range(10, 101, 10))


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page part, which is a page by itself where no script runs."""
    return (pages.show("/checks/{id}/preview", _show),)


def form_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the form for alert settings; what they leave out is at its default."""
    share = settings.get("parallelRunFailureThreshold", {})
    reminders = settings.get("reminders", {})
    return {
        "escalation": settings.get("escalationType", "RUN_BASED"),
        "runs": settings.get("runBasedEscalation", {}).get("failedRunThreshold", 1),
        "minutes": settings.get("timeBasedEscalation", {}).get("minutesFailingThreshold", 5),
        "reminders": reminders.get("amount", 0),
        "interval": reminders.get("interval", 5),
        "share": share.get("percentage", 10) if share.get("enabled") else 0,
        "choices": {
            "runs": RUNS,
            "minutes": MINUTES,
            "reminders": REMINDERS,
            "interval": INTERVALS,
            "share": SHARES,
        },
    }


async def _show(visit: Visit) -> Response:
    check_id = str(visit.request.path_params["id"])
    fields = _read(visit.request.query_params)
    wanted = {"checkId": check_id, "alertSettings": _settings_of(fields)}
    answer = await visit.call("POST /v1/alert-settings/preview", wanted)

    def read(connection: Connection) -> dict[str, Any]:
        check = checks.find(connection, visit.account_id, check_id)
        return {"check": check, "now_ms": visit.now_ms(connection)}

    alerts = [] if answer.is_error else answer.body["alerts"]
    left_out = 0 if answer.is_error else answer.body["alertsLeftOut"]
    rows = [
        {
            "at_ms": query_time_ms("at", one["at"]),
            "state": describe_alert(AlertType(one["alertType"]))[0],
            "word": describe_alert(AlertType(one["alertType"]))[1],
            "location": one["location"],
            "result_id": one["checkResultId"],
            "reminder": one["reminder"],
            "is_recovery": AlertType(one["alertType"]).is_recovery,
            "wouldHaveNotified": one["wouldHaveNotified"],
        }
        for one in reversed(alerts)
    ]
    is_part = visit.request.headers.get("hx-request") == "true"
    return visit.page(
        "check_preview_part.html" if is_part else "check_preview.html",
        **await visit.read(read),
        preview=fields,
        problem=answer.message,
        number=sum(one["wouldHaveNotified"] and not one["is_recovery"] for one in rows) + left_out,
        recoveries=sum(one["wouldHaveNotified"] and one["is_recovery"] for one in rows),
        silent=bool(rows) and not any(one["wouldHaveNotified"] for one in rows),
        more=max(0, len(rows) + left_out - _SHOWN),
        rows=rows[:_SHOWN],
        results=0 if answer.is_error else answer.body["results"],
    )


def _read(query: Mapping[str, str]) -> dict[str, Any]:
    fields = form_of({})
    if query.get("escalation") == "TIME_BASED":
        fields["escalation"] = "TIME_BASED"
    for name, choices in fields["choices"].items():
        given = query.get(name, "")
        if given.isascii() and given.isdecimal() and len(given) < 7 and int(given) in choices:
            fields[name] = int(given)
    return fields


def _settings_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "escalationType": fields["escalation"],
        "runBasedEscalation": {"failedRunThreshold": fields["runs"]},
        "timeBasedEscalation": {"minutesFailingThreshold": fields["minutes"]},
        "reminders": {"amount": fields["reminders"], "interval": fields["interval"]},
        "parallelRunFailureThreshold": {
            "enabled": fields["share"] > 0,
            "percentage": fields["share"] or 10,
        },
    }
