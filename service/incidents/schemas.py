"""Incidents and updates in requests and answers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from service.http.schema import RequestModel, ResponseModel, Text, judged_by
from service.http.times import Moment, moment
from service.incidents.actions import MOST_UPDATES
from service.incidents.model import (
    Incident,
    IncidentStatus,
    IncidentUpdate,
    NewIncident,
    NewUpdate,
    Severity,
)
from service.incidents.rules import find_course, find_status
from service.status_pages.model import ServiceRow, ServiceShown, render_service

_MOST_SERVICES: Final = 100
_MOST_LETTERS: Final = 10_000
_FIRST_YEAR: Final = 1970


def find_time_problem(text: str) -> str | None:
    """Why a text is no time of an update. None: it is one."""
    try:
        parse_time_ms(text)
    except ValueError:
        return "is no time; use ISO 8601 as in 2026-11-21T08:15:00Z"
    return None


def parse_time_ms(text: str) -> int | None:
    """A time in ms since 1970. None: it is before 1970, as clients send that have none.

    Raises:
        ValueError: it is no time.
    """
    at = datetime.fromisoformat(text.upper())
    if at.year < _FIRST_YEAR:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1000)


class IncidentUpdateWrite(RequestModel):
    """An update of an incident in a request."""

    description: Annotated[Text, Field(min_length=1, max_length=_MOST_LETTERS)]
    """What visitors read."""
    status: IncidentStatus = Field(default=IncidentStatus.INVESTIGATING, strict=False)
    """How far people are. RESOLVED closes the incident, another status opens it again."""
    public_incident_update_date: Annotated[Text, judged_by(find_time_problem)] | None = None
    """From when on it is shown and counts, in ISO 8601. Null: now."""
    notify_subscribers: bool = False
    """Whether subscribers get a mail of it."""

    def build(self, now_ms: int, *, kept_ms: int | None = None) -> NewUpdate:
        """The update; `kept_ms` is the time that it has already. None: it has none."""
        sent = self.public_incident_update_date
        at_ms = parse_time_ms(sent) if sent else None
        return NewUpdate(
            status=self.status,
            description=self.description,
            public_ms=at_ms or kept_ms or now_ms,
            notifies=self.notify_subscribers,
        )


class TouchedService(RequestModel):
    """A service that an incident touches."""

    id: Annotated[Text, Field(min_length=1, max_length=200)]
    """The id of the service; its other fields may be there and are not read."""


class IncidentChange(RequestModel):
    """An incident in a request that changes it."""

    name: Annotated[Text, Field(min_length=1, max_length=255)]
    """The title that visitors read."""
    severity: Severity = Field(strict=False)
    """How severe it is; the services have this state while it is open."""
    services: Annotated[list[TouchedService], Field(min_length=1, max_length=_MOST_SERVICES)]
    """The services that it touches."""

    def build(self) -> NewIncident:
        """The incident without its updates."""
        service_ids = tuple(dict.fromkeys(one.id for one in self.services))
        return NewIncident(name=self.name, severity=self.severity, service_ids=service_ids)


class IncidentWrite(IncidentChange):
    """An incident in a request."""

    incident_updates: Annotated[
        list[IncidentUpdateWrite], Field(min_length=1, max_length=MOST_UPDATES)
    ]
    """What is said of it; the first one begins it."""


class IncidentUpdateShown(ResponseModel):
    """An update of an incident."""

    id: str
    description: str
    status: IncidentStatus
    public_incident_update_date: Moment
    """From when on it is shown and counts."""
    notify_subscribers: bool
    created_at: Moment = Field(alias="created_at")


class IncidentShown(ResponseModel):
    """An incident."""

    name: str
    severity: Severity
    id: str
    services: list[ServiceShown]
    """The services that it touches."""
    incident_updates: list[IncidentUpdateShown]
    """The 100 newest, the newest first."""
    last_update_status: IncidentStatus
    """The status of the newest update that is public."""
    duration: int | None
    """Seconds from the first update to the RESOLVED that closed it, or to now. Null: no update is
    public yet."""
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment = Field(alias="updated_at")


class IncidentList(ResponseModel):
    """A part of the list of incidents."""

    length: int
    """How many entries this part has."""
    entries: list[IncidentShown]
    """The newest first."""
    next_id: str | None
    """What to send as `nextId` for the next part. Null: this is the last one."""


def render_update(update: IncidentUpdate) -> IncidentUpdateShown:
    """An update as its answer."""
    return IncidentUpdateShown(
        id=update.id,
        description=update.description,
        status=update.status,
        public_incident_update_date=moment(update.public_ms),
        notify_subscribers=update.notifies,
        created_at=moment(update.created_ms),
    )


def render_incident(
    incident: Incident, services: Mapping[str, ServiceRow], *, now_ms: int
) -> IncidentShown:
    """An incident as its answer; `services` holds those that it touches."""
    course = find_course(incident.updates, now_ms=now_ms)
    newest_first = list(reversed(incident.updates))[:MOST_UPDATES]
    return IncidentShown(
        name=incident.name,
        severity=incident.severity,
        id=incident.id,
        services=[render_service(services[one]) for one in incident.service_ids],
        incident_updates=[render_update(one) for one in newest_first],
        last_update_status=find_status(incident.updates, now_ms=now_ms),
        duration=course.duration_s(now_ms) if course else None,
        created_at=moment(incident.created_ms),
        updated_at=moment(incident.updated_ms or incident.created_ms),
    )


def dump(shown: ResponseModel) -> dict[str, Any]:
    """An answer as plain values."""
    return shown.model_dump(mode="json", by_alias=True)
