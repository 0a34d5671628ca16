"""Reads what a service has, to compare it with what is deployed."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from picket.api_client import ApiRefusedError, PublicApi
from picket.code.reading.linking import Resource

_PATHS: Final = {
    "check": "/v1/checks",
    "check-group": "/v1/check-groups",
    "alert-channel": "/v1/alert-channels",
    "private-location": "/v1/private-locations",
    "maintenance-window": "/v1/maintenance-windows",
    "status-page": "/v1/status-pages",
    "status-page-service": "/v1/status-pages/services",
}
"""Where the resources of a type are read."""


class Stored:
    """What the service has."""

    def __init__(self, api: PublicApi) -> None:
        self._api = api

    async def locations(self) -> dict[str, str]:
        """The ids of private locations, by slug."""
        return {str(one["slugName"]): str(one["id"]) for one in await self._api.locations()}

    async def read(self, kind: str, physical_id: str | None) -> dict[str, Any] | None:
        """One resource. None: it is not there, or nothing can be read of its type."""
        if physical_id is None or kind not in _PATHS:
            return None
        try:
            path = f"{_PATHS[kind]}/{quote(physical_id, safe='')}"
            found: dict[str, Any] = await self._api.ask("GET", path)
        except ApiRefusedError as refused:
            if refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
                return None
            raise
        return found

    async def without_strange_id(self, resource: Resource) -> Resource:
        """The resource, which takes over nothing if the account does not have that.

        Exported files have the ids of the account that they come from.
        """
        if resource.physical_id is None or resource.payload is None:
            return resource
        if await self.read(resource.type, resource.physical_id) is not None:
            return resource
        return replace(resource, physical_id=None)


def find_by_slug(resource: Resource, locations: Mapping[str, str]) -> Resource:
    """A location, which takes over the one with its slug: there cannot be another."""
    if resource.type != "private-location" or resource.payload is None:
        return resource
    return replace(resource, physical_id=locations.get(str(resource.payload["slugName"])))
