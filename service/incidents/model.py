"""Incidents and their updates as they are stored."""

from dataclasses import dataclass
from enum import StrEnum

from service.notices import SharedNotice


class Severity(StrEnum):
    """How severe an incident is."""

    CRITICAL = "CRITICAL"
    MAJOR = "MAJOR"
    MEDIUM = "MEDIUM"
    MINOR = "MINOR"


class IncidentStatus(StrEnum):
    """How far people are with an incident."""

    INVESTIGATING = "INVESTIGATING"
    IDENTIFIED = "IDENTIFIED"
    MONITORING = "MONITORING"
    RESOLVED = "RESOLVED"


@dataclass(frozen=True, slots=True)
class StatusChanged(SharedNotice):
    """A notice: something that a status page shows has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentUpdate:
    """What was said of an incident at one time."""

    id: str
    incident_id: str
    status: IncidentStatus
    description: str
    public_ms: int
    """From when on it is shown and counts."""
    notifies: bool
    """Whether subscribers get a mail of it."""
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident with what it touches and all that was said of it."""

    id: str
    account_id: str
    name: str
    severity: Severity
    check_id: str | None
    """The check whose alert opened it. None: a person did."""
    notifies: bool
    """Whether the updates that its check makes notify subscribers."""
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    service_ids: tuple[str, ...]
    updates: tuple[IncidentUpdate, ...]
    """By the time at which they are shown, the earliest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpdate:
    """An update before it has an id."""

    status: IncidentStatus
    description: str
    public_ms: int
    notifies: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIncident:
    """An incident before it has an id."""

    name: str
    severity: Severity
    service_ids: tuple[str, ...]
    check_id: str | None = None
    """The check whose alert opens it. None: a person does."""
    notifies: bool = False
    """Whether the updates that its check makes notify subscribers."""
