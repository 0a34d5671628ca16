"""Makes, renames and removes services of status pages."""

from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_id
from service.http.errors import ConflictError
from service.incidents import actions as incidents
from service.incidents.rules import is_open
from service.status_pages import store
from service.status_pages.actions import find_service
from service.status_pages.model import ServiceRow, ServiceWrite
from service.vault.encryption import Scope

_LOOKED_THROUGH: Final = 100


def create(connection: Connection, scope: Scope, body: ServiceWrite) -> ServiceRow:
    """Make a service."""
    service_id = new_id(scope.now_ms)
    row = {"id": service_id, "account_id": scope.account_id, "name": body.name}
    store.add_service(connection, {**row, "created_ms": scope.now_ms, "updated_ms": None})
    return find_service(connection, scope.account_id, service_id)


def rename(connection: Connection, scope: Scope, service_id: str, body: ServiceWrite) -> ServiceRow:
    """Give a service another name.

    Raises:
        NotFoundError: the account has no such service.
    """
    find_service(connection, scope.account_id, service_id)
    values = {"name": body.name, "updated_ms": scope.now_ms}
    store.change_service(connection, service_id, values)
    return find_service(connection, scope.account_id, service_id)


def delete(connection: Connection, scope: Scope, service_id: str) -> None:
    """Forget a service; cards and past incidents lose it.

    Raises:
        NotFoundError: the account has no such service.
        ConflictError: an incident that is open touches it.
    """
    row = find_service(connection, scope.account_id, service_id)
    newest = incidents.list_of_services(
        connection, scope.account_id, [service_id], limit=_LOOKED_THROUGH
    )
    for one in newest:
        if is_open(one.updates, now_ms=scope.now_ms):
            raise ConflictError(
                f"The incident {one.name} touches the service {row.name}; resolve it first."
            )
    store.remove_service(connection, service_id)
