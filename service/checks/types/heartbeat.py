"""Heartbeat monitors in the API."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from contract.checks import SECONDS_PER, CheckType, HeartbeatSpec, TimeUnit
from service.analytics.measures import PING_STATE, Analytics
from service.checks.fields import MinuteFrequency
from service.checks.rules import heartbeat_problem
from service.checks.schemas import CheckShown, MinuteCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import JsonNumber, RequestModel, check_pattern, field_error

Unit = Literal["seconds", "minutes", "hours", "days"]
_OF_PINGS = r"^[A-Za-z0-9._~-]*$"
PingToken = Annotated[
    str,
    Field(max_length=200, json_schema_extra={"pattern": _OF_PINGS}),
    check_pattern(
        _OF_PINGS,
        "must be letters a to z in either case, digits, dots, hyphens, underscores and tildes",
    ),
]


class Heartbeat(RequestModel):
    """When pings are expected: period 30 seconds to 365 days, grace 0 to 365 days."""

    period: Annotated[float, Field(gt=0), JsonNumber]
    """The time between pings, in `periodUnit`."""
    period_unit: Unit
    """The unit of `period`."""
    grace: Annotated[float, Field(ge=0), JsonNumber]
    """How late a ping may be, in `graceUnit`."""
    grace_unit: Unit
    """The unit of `grace`."""
    ping_token: PingToken | None = None
    """The last part of the ping URL. Null or empty: one is generated, and kept on updates."""

    @model_validator(mode="after")
    def _times_fit(self) -> "Heartbeat":
        if found := heartbeat_problem(self.period_s, self.grace_s):
            raise field_error(*found)
        return self

    @property
    def period_s(self) -> float:
        """A ping is due this long after the last one."""
        return self.period * SECONDS_PER[TimeUnit(self.period_unit)]

    @property
    def grace_s(self) -> float:
        """How much longer we wait."""
        return self.grace * SECONDS_PER[TimeUnit(self.grace_unit)]


class HeartbeatCheckWrite(MinuteCheckWrite):
    """A heartbeat monitor; without locations it is judged at the oldest private location."""

    kind = CheckType.HEARTBEAT
    heartbeat: Heartbeat
    """When pings are expected."""
    frequency: MinuteFrequency = 1
    """Minutes between checks of the last ping: how late a missing ping may be noticed."""

    @classmethod
    def to_spec(cls, doc: Mapping[str, Any]) -> HeartbeatSpec:
        """Specs count in seconds."""
        pings = doc["heartbeat"]
        return HeartbeatSpec(
            period_s=pings["period"] * SECONDS_PER[TimeUnit(pings["periodUnit"])],
            grace_s=pings["grace"] * SECONDS_PER[TimeUnit(pings["graceUnit"])],
            ping_token=pings["pingToken"],
        )


class HeartbeatShown(Heartbeat):
    """When pings are expected, and where."""

    ping_url: str
    """GET or POST this address. Empty for keys that only read."""


class HeartbeatCheckShown(CheckShown, HeartbeatCheckWrite):
    """A heartbeat monitor."""

    check_type: Literal["HEARTBEAT"]
    heartbeat: HeartbeatShown
    ping_url: str
    """Same as `heartbeat.pingUrl`, for clients that expect it here."""


HEARTBEAT = TypeDefinition(
    write=HeartbeatCheckWrite,
    purpose="Waits for your jobs to report that they ran.",
    start={"heartbeat": {"period": 1, "periodUnit": "days", "grace": 1, "graceUnit": "hours"}},
    shown=HeartbeatCheckShown,
    refusals=(409,),
    example={
        "name": "Backup",
        "heartbeat": {"period": 1, "periodUnit": "days", "grace": 30, "graceUnit": "minutes"},
        **PLACES,
    },
    analytics=Analytics(
        path="heartbeat-checks",
        groups=(),
        dimension=PING_STATE,
        has_response_time=False,
        has_ping_states=True,
    ),
)
