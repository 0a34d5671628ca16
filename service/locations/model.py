"""Private locations as people send and see them."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from contract.targets import format_value
from service.http.schema import (
    RequestModel,
    ResponseModel,
    Text,
    blank_is_none,
    field_error,
    judged_by,
)
from service.http.times import Moment
from service.notices import SharedNotice
from service.vault.texts import PROXY_CREDENTIALS

MAX_ACTIVE_KEYS = 2
"""One in use and one to take its place."""


def _check_proxy_url(value: str) -> str:
    schemes = ("http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://", "{{")
    if not value.lower().startswith(schemes):
        raise field_error("", "must begin with http://, https:// or socks5://")
    # A password may hold any sign, as those that end a host.
    shown = PROXY_CREDENTIALS.hide(value)
    if "{{" not in shown and not _names_a_server(shown):
        raise field_error("", "must name a host, and a port from 1 to 65535 or none")
    return value


def _names_a_server(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


ProxyUrl = Annotated[
    Annotated[Text, Field(max_length=2048), AfterValidator(_check_proxy_url)] | None,
    BeforeValidator(blank_is_none),
]
_SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"


def _slug_problem(slug: str) -> str | None:
    if re.fullmatch(_SLUG, slug):
        return None
    words = "use lower-case letters a to z, digits and single hyphens, as in cellar-2"
    return f"is {format_value(slug)}; {words}"


Slug = Annotated[
    str,
    Field(min_length=1, max_length=100, json_schema_extra={"pattern": _SLUG}),
    judged_by(_slug_problem),
]


class LocationChange(RequestModel):
    """What can change in a private location."""

    name: Annotated[Text, Field(min_length=1)]
    icon: Annotated[Text, Field(min_length=1)] = "location"
    """Name of an icon."""
    proxy_url: ProxyUrl = None
    """Proxy for what URL and API checks send; may hold credentials, and `*********` for those that
    are stored. Null: direct."""


class LocationWrite(LocationChange):
    """A new private location."""

    slug_name: Slug
    """How checks name it; cannot change later."""


class KeyShown(ResponseModel):
    """A key that agents of a location use; `rawKey` is there only in the answer that made it."""

    id: str
    masked_key: str
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(default=None, alias="updated_at")


class NewKeyShown(KeyShown):
    """A new key; its raw form is shown only once."""

    raw_key: str


class UnavailableTypeShown(ResponseModel):
    """A check type that an agent cannot run on its machine."""

    type: str
    cause: str
    """What is missing, or prevents it."""
    remedy: str
    """How to fix it."""
    only_with_scripts: bool
    """The type's checks with setup or teardown scripts cannot run; its others can."""


class RunningAgent(ResponseModel):
    """An agent that is connected."""

    id: str
    last_seen_at: Moment
    check_types: list[str]
    """The types that it runs (Picket's own field)."""
    unavailable: list[UnavailableTypeShown]
    """The types that it cannot run, and why (Picket's own field). A type in neither list has not
    been tried yet."""


class RunningVersion(ResponseModel):
    """The connected agents of one version."""

    version: str
    count: int
    agents: list[RunningAgent]


class LocationShown(ResponseModel):
    """A private location."""

    id: str
    name: str
    slug_name: str
    icon: str
    proxy_url: str | None
    """Proxy for what URL and API checks send. Null: direct."""
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    keys: list[KeyShown]
    last_seen: Moment | None
    """When an agent was last connected. Null: never."""
    agent_count: int
    """Agents that are connected now."""
    available: bool = True
    """False: checks run here, but no agent was connected for ten minutes; until one is, their
    runs are recorded as missed."""
    unavailable_since: Moment | None = None
    """Null: it is available."""


class NewLocationShown(LocationShown):
    """A new private location with its first key."""

    keys: list[NewKeyShown]  # type: ignore[assignment]  # the same keys, with their raw form


class LocationWithVersions(LocationShown):
    """A private location; with `versions=true`, also its connected agents."""

    min_agent_version: str | None = None
    """The lowest connected version. Null: no agent is connected."""
    running_agents: list[RunningVersion] | None = None


class RegionShown(ResponseModel):
    """A region that checks may name."""

    region: str
    name: str


class QueueMetrics(ResponseModel):
    """The history of a location's queue: three arrays of the same length, one item per minute."""

    timestamps: list[Moment]
    queue_size: list[int]
    """Runs that an agent could have claimed."""
    oldest_scheduled_check_run: list[float]
    """Seconds that the oldest of them had waited; 0: there was none."""


@dataclass(frozen=True, slots=True)
class QueueSample:
    """A location's queue at a minute."""

    location_id: str
    at_ms: int
    queue_size: int
    oldest_wait_ms: int
    """0: none waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLocation:
    """A new location and its first key, at the only moment at which the key is known."""

    id: str
    key_id: str
    raw_key: str = field(repr=False)
    masked_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationKeyEnded(SharedNotice):
    """Notice: the key opens nothing any more."""

    key_id: str
    location_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationRow:
    """A private location as it is stored."""

    id: str
    account_id: str
    name: str
    slug_name: str
    icon: str
    proxy_url: str | None = field(default=None, repr=False)
    """With hidden credentials, once it is stored. None: direct."""
    created_ms: int
    updated_ms: int | None = None
    """None: never changed."""
    sealed_proxy_url: bytes | None = field(default=None, repr=False)
    """The whole of it. None: it holds no credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A good key as it is stored."""

    id: str
    location_id: str
    masked: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDigest:
    """A good key by its digest, and the location that it opens."""

    id: str
    digest: bytes
    location_id: str


REGIONS: Final[dict[str, str]] = {
    "us-east-1": "N. Virginia",
    "us-east-2": "Ohio",
    "us-west-1": "N. California",
    "us-west-2": "Oregon",
    "ca-central-1": "Montreal",
    "sa-east-1": "São Paulo",
    "eu-west-1": "Ireland",
    "eu-central-1": "Frankfurt",
    "eu-west-2": "London",
    "eu-west-3": "Paris",
    "eu-north-1": "Stockholm",
    "eu-south-1": "Milan",
    "me-south-1": "Bahrain",
    "ap-southeast-1": "Singapore",
    "ap-northeast-1": "Tokyo",
    "ap-east-1": "Hong Kong",
    "ap-southeast-2": "Sydney",
    "ap-southeast-3": "Jakarta",
    "ap-northeast-2": "Seoul",
    "ap-northeast-3": "Osaka",
    "ap-south-1": "Mumbai",
    "af-south-1": "Cape Town",
}


def render_regions() -> list[RegionShown]:
    """All of them; this installation serves one where a private location has it as its slug."""
    return [RegionShown(region=region, name=name) for region, name in REGIONS.items()]
