"""Setting groups up, changing and deleting them, and what that means for their checks."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from service.checks import actions as checks
from service.checks import changes as check_changes
from service.checks.places import hold_known
from service.checks.scripted import phases
from service.checks.spec import doc_of
from service.groups import store
from service.groups.actions import find, with_variables
from service.groups.bodies import AnyGroupWrite
from service.groups.model import BASE_URL, GroupRow
from service.groups.sealing import opened, sealed
from service.http.errors import ConflictError
from service.locations import actions as locations
from service.triggers import actions as triggers
from service.triggers.model import Runs, Target
from service.variables import changes as variables
from service.variables.bodies import EnvironmentVariable
from service.variables.model import Owner
from service.vault.keeping import Stored, kept
from service.vault.scope import Scope
from service.vault.texts import OF_URL


def create(connection: Connection, scope: Scope, body: AnyGroupWrite) -> GroupRow:
    """Set up a group.

    Raises:
        InvalidError: it names a location or a snippet that is not there.
    """
    values, doc = _values(connection, scope, body, stored=None)
    made = {"account_id": scope.account_id, "created_ms": scope.now_ms, "updated_ms": None}
    # Its number, for which secrets are sealed, is known only then.
    group_id = store.add(connection, {**values, **made, "doc": {}})
    store.change(connection, group_id, _sealed(scope, group_id, doc))
    return _hang_on(connection, scope, group_id, body, url=_url(doc))


def replace(connection: Connection, scope: Scope, group_id: int, body: AnyGroupWrite) -> GroupRow:
    """Set a group up anew; its checks go by it from their next run on.

    Raises:
        NotFoundError: the account has no such group.
        InvalidError: it names a location or a snippet that is not there, or one of its checks
            could not run like this.
    """
    before = find(connection, scope.account_id, group_id)
    values, doc = _values(connection, scope, body, stored=lambda: opened(before, scope.vault).doc)
    changed = {**values, **_sealed(scope, group_id, doc), "updated_ms": scope.now_ms}
    store.change(connection, group_id, changed)
    group = _hang_on(connection, scope, group_id, body, url=_url(doc))
    check_changes.apply_group(connection, scope, group)
    return group


def delete(connection: Connection, scope: Scope, group_id: int) -> None:
    """Forget a group.

    Raises:
        NotFoundError: the account has no such group.
        ConflictError: checks are in it.
    """
    group = find(connection, scope.account_id, group_id)
    count, names = checks.users_of_group(connection, scope.account_id, group_id)
    if count:
        shown = ", ".join(names) + (" and others" if count > len(names) else "")
        raise ConflictError(
            f"The check group {group.name} holds {count} checks ({shown}); delete them, or take"
            " them out of it, first."
        )
    variables.forget(connection, Owner.group(scope.account_id, group_id))
    triggers.forget(connection, Target(Runs.GROUP, str(group_id)))
    store.remove(connection, group_id)


def _values(
    connection: Connection, scope: Scope, body: AnyGroupWrite, *, stored: Stored | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Columns of its row, and its body."""
    doc = kept(doc_of(body), stored)
    hold_known(doc, list(locations.ids_by_slug(connection, scope.account_id)))
    phases(connection, scope.account_id, doc)
    return {"name": body.name, "form": body.form}, doc


def _sealed(scope: Scope, group_id: int, doc: Mapping[str, Any]) -> Mapping[str, Any]:
    return sealed(doc, scope.vault, account_id=scope.account_id, group_id=group_id)


def _hang_on(
    connection: Connection, scope: Scope, group_id: int, body: AnyGroupWrite, *, url: str
) -> GroupRow:
    store.replace_tags(connection, group_id, body.tags or [])
    owner = Owner.group(scope.account_id, group_id)
    variables.replace(connection, owner, _variables(body, url), vault=scope.vault)
    (group,) = with_variables(connection, [find(connection, scope.account_id, group_id)])
    return group


def _url(doc: Mapping[str, Any]) -> str:
    url: str = doc["apiCheckDefaults"]["url"]
    return url


def _variables(body: AnyGroupWrite, url: str) -> list[EnvironmentVariable]:
    """The group's own, and its address, which checks read in the same way."""
    own = list(body.environment_variables or ())
    if not url:
        return own
    # Whoever only reads is not shown user and password in it, and must not find them in results.
    is_secret = OF_URL.hidden(url) != url
    address = {"key": BASE_URL, "value": url, "locked": is_secret}
    return [*own, EnvironmentVariable.model_validate(address)]
