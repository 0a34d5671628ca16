"""What may stand in a status page, and what state its services are in."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from service.incidents.model import Incident, Severity
from service.incidents.rules import is_open

_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_HOST: Final = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{1,62}"
)
_WEB: Final = ("http://", "https://")
_PICTURE: Final = "data:image/"


class ServiceState(StrEnum):
    """How a service is, by the open incidents that touch it."""

    OPERATIONAL = "OPERATIONAL"
    MINOR = "MINOR"
    MEDIUM = "MEDIUM"
    MAJOR = "MAJOR"
    CRITICAL = "CRITICAL"


_WORST_LAST: Final = tuple(ServiceState)
_STATE_OF: Final = {severity: ServiceState(severity.value) for severity in Severity}


def find_state(
    service_ids: Iterable[str], incidents: Iterable[Incident], *, now_ms: int
) -> ServiceState:
    """The state of services: the worst severity of the open incidents that touch them."""
    wanted = set(service_ids)
    found = [
        _STATE_OF[one.severity]
        for one in incidents
        if wanted.intersection(one.service_ids) and is_open(one.updates, now_ms=now_ms)
    ]
    return max(found, key=_WORST_LAST.index, default=ServiceState.OPERATIONAL)


def find_slug_problem(text: str) -> str | None:
    """Why a text is no last part of a page's address. None: it is one."""
    if _SLUG.fullmatch(text):
        return None
    return (
        "must have 1 to 63 lower-case letters, digits and hyphens, and begin and end with a letter"
        " or a digit"
    )


def find_domain_problem(text: str) -> str | None:
    """Why a text is no domain of a page. None: it is one."""
    if _HOST.fullmatch(text.lower()):
        return None
    return "is no host name; use one as in status.example.com"


def find_link_problem(text: str) -> str | None:
    """Why a text is no address that a visitor may be sent to. None: it is one."""
    return None if _is_web(text) else "must begin with http:// or https://"


def find_picture_problem(text: str) -> str | None:
    """Why a text is no address of a picture. None: it is one."""
    if text.startswith(_PICTURE) or _is_web(text):
        return None
    return "must begin with http://, https:// or data:image/"


def _is_web(text: str) -> bool:
    try:
        return text.lower().startswith(_WEB) and bool(urlsplit(text).hostname)
    except ValueError:
        return False
