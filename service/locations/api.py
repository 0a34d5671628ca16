"""`/v1/private-locations` and `/v1/locations`: where checks run from."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection
from starlette.responses import Response

from service.agents import actions as agents
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError
from service.http.mutations import (
    Changed,
    ChangeDep,
    CreateDep,
    PartialBody,
    changed_fields,
    complete_body,
    describe_change,
    sent_fields,
)
from service.http.responses import OPENAPI, Items
from service.http.routing import ONE, answers, json, json_model, keyed_operations, open_operations
from service.http.schema import NO_NUL
from service.http.times import moment, no_time, query_time_ms
from service.locations import actions
from service.locations.actions import find
from service.locations.location_changes import delete, end_key
from service.locations.model import (
    LocationChange,
    LocationRow,
    LocationShown,
    LocationWithVersions,
    LocationWrite,
    NewKeyShown,
    NewLocationShown,
    QueueMetrics,
    RegionShown,
    render_regions,
)
from service.locations.rules import window_problem
from service.locations.secrets import decrypt, decrypt_for_people
from service.locations.views import (
    render_location,
    render_location_with_versions,
    render_new_location,
    render_queue_metrics,
)
from service.vault.encryption import DecryptionError, Scope, Vault, Viewer

router = keyed_operations("Private locations", prefix="/v1/private-locations")
regions_router = open_operations("Locations", prefix="/v1/locations")

_READER: Final = TypeAdapter(LocationChange)
LocationId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
KeyId = Annotated[str, Path(alias="keyId", pattern=NO_NUL, max_length=200)]

_KEYS = ONE + "/keys"
_From = Query(alias="from", description="Seconds since 1970, at most 15 days in the past.")
_To = Query(alias="to", description="Seconds since 1970, later than `from`.")
_SHOWN = "The location; keys without their secrets."


def _list_responses() -> dict[int | str, dict[str, Any]]:
    entries = answers(200, list[LocationWithVersions], "All locations, oldest first.")
    entries[200]["headers"] = OPENAPI
    return entries


@regions_router.get("", responses=answers(200, list[RegionShown], "All known regions."))
async def list_regions() -> Response:
    """List regions. This installation serves only those with a private location of that slug."""
    return json([region.model_dump(by_alias=True) for region in render_regions()])


@router.get("", responses=_list_responses())
async def list_locations(
    caller: CallerDep,
    backend: BackendDep,
    *,
    versions: Annotated[
        bool, Query(description="Add `runningAgents` and `minAgentVersion`.")
    ] = False,
) -> Response:
    """List private locations."""
    viewer = Viewer(backend.vault, may_write=caller.may_write)

    items = Items(
        show=lambda row: viewer.reveal(row, decrypt_for_people),
        hide=lambda row: row,
        name=lambda row: row.id,
    )

    def query(connection: Connection) -> tuple[list[LocationShown], dict[str, str]]:
        rows, headers = items.shown(actions.list_all(connection, caller.account_id))
        now_ms = backend.clock.now_ms(connection)
        return _render_all(connection, rows, now_ms=now_ms, versions=versions), headers

    locations, headers = await backend.database.read(query)
    shown = [location.model_dump(by_alias=True, mode="json") for location in locations]
    return json(shown, headers=headers)


@router.post(
    "",
    status_code=201,
    responses=answers(201, NewLocationShown, "The location with its first key.", 409),
)
async def create_location(body: Annotated[LocationWrite, Body()], creating: CreateDep) -> Response:
    """Create a private location and its first key; the raw key is shown only once."""
    pepper = creating.backend.pepper

    def change(connection: Connection, scope: Scope) -> Changed:
        made = actions.create(connection, scope, body=body, pepper=pepper)
        row = decrypt_for_people(find(connection, scope.account_id, made.id), scope.vault)
        answer = json_model(render_new_location(row, made=made), status=201)
        return Changed(answer=answer, resource_id=row.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, LocationShown, _SHOWN, 404))
async def read_location(
    location_id: LocationId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a private location."""
    viewer = Viewer(backend.vault, may_write=caller.may_write)

    def query(connection: Connection) -> LocationShown:
        row = find(connection, caller.account_id, location_id)
        row = viewer.reveal(row, decrypt_for_people)
        return _render(connection, row, now_ms=backend.clock.now_ms(connection))

    return json_model(await backend.database.read(query))


@router.put(
    ONE,
    responses=answers(200, LocationShown, _SHOWN, 404),
    openapi_extra=describe_change(LocationWrite),
)
async def change_location(
    location_id: LocationId, sent: PartialBody, changing: ChangeDep
) -> Response:
    """Change a private location; what is omitted stays, and its slug cannot change."""

    def change(connection: Connection, scope: Scope) -> Changed:
        held = find(connection, scope.account_id, location_id)
        stored = {"name": held.name, "icon": held.icon, "proxyUrl": held.proxy_url}
        body = complete_body(_READER, sent, stored)
        before = _for_comparison(find(connection, scope.account_id, location_id), scope.vault)
        actions.change(connection, scope, location_id, body)
        row = decrypt_for_people(find(connection, scope.account_id, location_id), scope.vault)
        fields = tuple(map(to_camel, changed_fields(before, asdict(row))))
        answer = json_model(_render(connection, row, now_ms=scope.now_ms))
        return Changed(answer=answer, resource_id=location_id, fields=fields)

    return await changing.make(change)


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404, 409))
async def delete_location(location_id: LocationId, changing: ChangeDep) -> Response:
    """Delete a private location that no check uses; its keys are revoked at once."""
    return await changing.delete(location_id, lambda c, scope: delete(c, scope, location_id))


@router.post(_KEYS, status_code=201, responses=answers(201, NewKeyShown, "The key.", 404, 409))
async def create_location_key(location_id: LocationId, creating: CreateDep) -> Response:
    """Create another key; the raw key is shown only once. A location has at most two."""
    pepper = creating.backend.pepper

    def change(connection: Connection, scope: Scope) -> Changed:
        key_id, key = actions.create_key(connection, scope, location_id, pepper=pepper)
        shown = NewKeyShown(
            id=key_id, raw_key=key.raw, masked_key=key.masked, created_at=moment(scope.now_ms)
        )
        return Changed(answer=json_model(shown, status=201), resource_id=f"{location_id}/{key_id}")

    return await creating.make(change)


@router.delete(_KEYS + "/{keyId}", status_code=204, responses=answers(204, None, "Gone.", 404))
async def delete_location_key(
    location_id: LocationId, key_id: KeyId, changing: ChangeDep
) -> Response:
    """Revoke a key; agents that use it are refused at once."""
    return await changing.delete(
        f"{location_id}/{key_id}", lambda c, scope: end_key(c, scope, location_id, key_id)
    )


@router.get(ONE + "/metrics", responses=answers(200, QueueMetrics, "One item per minute.", 404))
async def read_location_metrics(
    location_id: LocationId,
    caller: CallerDep,
    backend: BackendDep,
    *,
    since: Annotated[str, _From],
    until: Annotated[str, _To],
) -> Response:
    """Read how many runs waited at a private location, and how long the oldest had waited."""
    from_ms, until_ms = _require_time_ms("from", since), _require_time_ms("to", until)

    def query(connection: Connection) -> QueueMetrics:
        now_ms = backend.clock.now_ms(connection)
        if why := window_problem(from_ms=from_ms, until_ms=until_ms, now_ms=now_ms):
            raise InvalidError(why, keys=("from",), source="query")
        return render_queue_metrics(
            actions.list_samples(
                connection, caller.account_id, location_id, from_ms=from_ms, until_ms=until_ms
            )
        )

    return json_model(await backend.database.read(query))


def _require_time_ms(name: str, text: str) -> int:
    found = query_time_ms(name, text)
    if found is None:
        raise no_time(name, text)
    return found


def _for_comparison(row: LocationRow, vault: Vault) -> dict[str, Any]:
    """To tell what a change changed; a proxy that cannot be decrypted is like no other."""
    try:
        return asdict(decrypt(row, vault))
    except DecryptionError:
        return {**asdict(row), "proxy_url": "", "sealed_proxy_url": None}


def _render(connection: Connection, row: LocationRow, *, now_ms: int) -> LocationShown:
    keys = actions.list_keys(connection, [row.id])
    seen = agents.seen_at(connection, [row.id])
    outages = actions.list_outages(connection)
    return render_location(row, keys=keys, agents=seen, outages=outages, now_ms=now_ms)


def _render_all(
    connection: Connection, rows: Sequence[LocationRow], *, now_ms: int, versions: bool
) -> list[LocationShown]:
    ids = [row.id for row in rows]
    keys, seen = actions.list_keys(connection, ids), agents.seen_at(connection, ids)
    show = render_location_with_versions if versions else render_location
    outages = actions.list_outages(connection)
    return [show(row, keys=keys, agents=seen, outages=outages, now_ms=now_ms) for row in rows]
