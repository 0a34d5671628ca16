"""Checks as they are stored, asked for, and known to other features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from contract.checks import SPEC_TYPES, CheckType, Lane
from contract.targets import format_value
from service.alert_channels.model import NO_SUBSCRIPTIONS, CheckSubscriptions
from service.http.errors import InvalidError
from service.locations.regions import NO_REGIONS, RegionLocations
from service.variables.model import VariableRow

if TYPE_CHECKING:
    CheckKind = str
else:
    CheckKind = Literal[tuple(kind.value for kind in SPEC_TYPES)]
    """A check's type in a query, which the document lists."""
StatusFilter = Literal["passing", "failing", "degraded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFilter:
    """Which checks a list shows; empty fields let all through."""

    tags: tuple[str, ...] = ()
    """All of them."""
    check_type: str | None = None
    """None: any."""
    search: str | None = None
    """Part of the name or of a tag. None: any."""
    url_part: str | None = None
    """Part of an API check's URL. None: any."""
    status: StatusFilter | None = None
    """The status of the last result. None: any, or no result yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """A check as it is stored: what is secret in it stands apart (`service.vault.bodies`)."""

    id: str
    account_id: str
    type: str
    name: str
    activated: bool
    doc: Mapping[str, Any]
    version: int
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    group_id: int | None = None
    """None: it is in no group."""
    applied: Mapping[str, Any] | None = None
    """`doc` with the settings of its group. None: it is in no group."""
    secrets: bytes | None = field(default=None, repr=False)
    """What is missing in `doc` and `applied`, encrypted. None: nothing is."""
    variables: Sequence[VariableRow] = ()
    """Its own; read by `actions.complete` alone."""
    alerts: CheckSubscriptions = NO_SUBSCRIPTIONS
    """Where its alerts go; read as above."""

    @property
    def effective(self) -> Mapping[str, Any]:
        """The check as it runs: with the settings of its group, if it is in one."""
        return self.doc if self.applied is None else self.applied


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckName:
    """What tells a check from others."""

    id: str
    type: CheckType
    name: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLabels:
    """What tells people a check from others."""

    id: str
    type: CheckType
    name: str
    activated: bool
    muted: bool
    group_id: int | None
    """None: it is in no group."""
    tags: Sequence[str]
    """Its own and its group's."""
    status: str | None
    """The status of the newest final result that judged the target. None: there is none."""
    heartbeat_spec: bytes | None
    """JSON of a heartbeat's spec. None: it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCheck:
    """A check whose failure opens an incident of a service of status pages."""

    id: str
    name: str
    activated: bool
    muted: bool
    service_id: str
    severity: str
    """How severe the incident is: a value of `service.incidents.model.Severity`."""
    tags: Sequence[str]
    """Its own and its group's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckToRun:
    """What starting a run of an activated check requires."""

    id: str
    type: CheckType
    lane: Lane
    name: str
    tags: frozenset[str]
    """Its own and its group's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredCheck:
    """What a run requires of a check that is not stored."""

    id: str
    """No check has it, or will have it."""
    type: CheckType
    lane: Lane
    name: str
    group_id: int | None
    """None: it is in no group."""
    spec: bytes
    """JSON of the contract's spec, encrypted if it holds a secret."""
    bundle_sha256: str | None
    """None: it is no suite."""
    snapshots: str | None = None
    """The SHA-256 of each snapshot that it compares with, joined by spaces. None: there is none."""
    location_ids: Sequence[str] = ()
    """Where it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTerms:
    """On what terms a check runs: what scheduling, the queue, results and heartbeats go by."""

    account_id: str
    type: CheckType
    lane: Lane
    name: str
    activated: bool
    muted: bool
    group_id: int | None
    """None: it is in no group."""
    frequency: int
    """Minutes; 0: every `frequency_offset` seconds."""
    frequency_offset: int | None
    """None: the phase comes from the id."""
    run_parallel: bool
    doc: Mapping[str, Any]
    """With the settings of its group."""
    spec: bytes
    """JSON of the contract's spec, encrypted if it holds a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRow:
    """A check that may use snippets."""

    id: str
    account_id: str
    type: str
    doc: Mapping[str, Any]
    group_id: int | None
    """None: it is in no group."""
    spec: bytes
    """JSON of the contract's spec, encrypted if it holds a secret."""


LOCATION_FIELDS: Final = ("privateLocations", "locations")
NO_LOCATION = "You have to set at least one `location` or `privateLocation`"


def resolve_locations(
    ids: Mapping[str, str],
    doc: Mapping[str, Any],
    kind: CheckType,
    *,
    regions: RegionLocations = NO_REGIONS,
) -> list[str]:
    """The ids of the locations at which the check runs, in its own order, each once.

    `ids`: those of the account, by slug, oldest first.

    Raises:
        InvalidError: it names a location that is not there, or is activated and names none.
    """
    require_known_locations(doc, list(ids), regions=regions)
    served = (regions.find_slug(region, ids) for region in doc["locations"])
    wanted = [*doc["privateLocations"], *(slug for slug in served if slug)]
    found = [ids[slug] for slug in dict.fromkeys(wanted)]
    if not found and kind is CheckType.HEARTBEAT:
        # Nothing is looked at from there: somebody has to say that the ping did not come.
        found = list(ids.values())[:1]
    if not found and doc["activated"]:
        raise InvalidError(NO_LOCATION, keys=("locations", "privateLocations"))
    return found


def require_known_locations(
    doc: Mapping[str, Any], slugs: Sequence[str], *, regions: RegionLocations = NO_REGIONS
) -> None:
    """Refuse a location of a check or a group that is none of these, nor stands for a region.

    Raises:
        InvalidError: it names one.
    """
    have = f"there are {', '.join(slugs)}" if slugs else "there are none yet"
    for order, slug in enumerate(doc["privateLocations"]):
        if slug not in slugs:
            raise InvalidError(
                f'"privateLocations[{order}]" is {format_value(slug)}, and there is no private'
                f" location of this slug; {have}.",
                keys=(f"privateLocations[{order}]",),
            )
    for order, region in enumerate(doc["locations"]):
        if regions.find_slug(region, slugs) is None:
            raise InvalidError(
                f'"locations[{order}]" is {region}, and nothing runs there:'
                f" {regions.explain(region, slugs)}.",
                keys=(f"locations[{order}]",),
            )
