"""Setting checks up, changing and deleting them: one transaction per function."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from contract.checks import CheckType, lane
from contract.wire import encode
from service.checks import running, scripted, store
from service.checks.actions import find
from service.checks.bodies import AnyCheckWrite, HeartbeatCheckWrite
from service.checks.model import CheckRow
from service.checks.places import places
from service.checks.spec import doc_of, spec_of, type_of
from service.db.ids import new_id
from service.http.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose checks, and when."""

    account_id: str
    now_ms: int


def create(connection: Connection, scope: Scope, check: AnyCheckWrite) -> CheckRow:
    """Set up a check; it runs from now on if it is activated.

    Raises:
        InvalidError: it names a location, snippet or bundle that is not there, or no location.
        ConflictError: its ping token is another check's.
    """
    location_ids = places(connection, scope.account_id, check)
    check_id, token = new_id(scope.now_ms), _token(check, kept=None)
    row = {
        **_columns(connection, scope, check, token),
        "id": check_id,
        "account_id": scope.account_id,
        "type": type_of(check).value,
        "version": 1,
        "created_ms": scope.now_ms,
        "updated_ms": None,
    }
    store.insert_check(connection, row)
    _hang_on(connection, check_id, check=check, location_ids=location_ids)
    running.begin(connection, check_id, token=token, now_ms=scope.now_ms)
    return find(connection, scope.account_id, check_id)


def replace(connection: Connection, scope: Scope, check_id: str, check: AnyCheckWrite) -> CheckRow:
    """Set a check up anew; what is left out takes its default, but a ping token stays.

    Raises:
        NotFoundError: the account has no such check.
        InvalidError: it is of another type, or names a location, snippet or bundle that is not
            there, or no location.
    """
    before = find(connection, scope.account_id, check_id)
    if before.type != type_of(check).value:
        path = f"/v1/checks/{before.type.lower().replace('_', '')}/{check_id}"
        raise InvalidError(
            f"The check is of type {before.type}; use PUT {path}.", keys=("id",), source="path"
        )
    location_ids = places(connection, scope.account_id, check)
    token = _token(check, kept=before.doc.get("heartbeat", {}).get("pingToken"))
    values = {**_columns(connection, scope, check, token), "updated_ms": scope.now_ms}
    store.update_check(connection, check_id, values)
    _hang_on(connection, check_id, check=check, location_ids=location_ids)
    running.change(connection, before, check=check, token=token, now_ms=scope.now_ms)
    return find(connection, scope.account_id, check_id)


def delete(connection: Connection, scope: Scope, check_id: str) -> None:
    """Forget a check; its runs that wait are dropped, those that run are told to stop.

    Raises:
        NotFoundError: the account has none with this id.
    """
    find(connection, scope.account_id, check_id)
    running.end(connection, check_id, now_ms=scope.now_ms)
    store.delete_check(connection, check_id)


def _token(check: AnyCheckWrite, *, kept: str | None) -> str | None:
    if not isinstance(check, HeartbeatCheckWrite):
        return None
    return check.heartbeat.ping_token or kept or str(uuid.uuid4())


def _columns(
    connection: Connection, scope: Scope, check: AnyCheckWrite, token: str | None
) -> Mapping[str, Any]:
    doc = doc_of(check)
    spec = spec_of(check, ping_token=token)
    spec = scripted.completed(connection, scope.account_id, spec, doc=doc)
    if type_of(check) is CheckType.HEARTBEAT:
        doc["heartbeat"]["pingToken"] = token
    return {
        "lane": lane(spec).value,
        "name": check.name,
        "activated": check.activated,
        "muted": check.muted,
        "frequency": check.frequency,
        "frequency_offset": check.frequency_offset,
        "run_parallel": check.run_parallel,
        "doc": doc,
        "spec": encode(spec),
    }


def _hang_on(
    connection: Connection, check_id: str, *, check: AnyCheckWrite, location_ids: list[str]
) -> None:
    store.replace_tags(connection, check_id, check.tags or [])
    store.replace_locations(connection, check_id, location_ids)
