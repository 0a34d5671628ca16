"""Creates, changes and removes groups."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.alert_channels.model import Subscriber
from service.checks import actions as checks
from service.checks import changes as check_changes
from service.checks.fields import read_choices
from service.checks.model import require_known_locations
from service.checks.resolve import build_doc, find_phases
from service.groups import store
from service.groups.actions import complete, find
from service.groups.model import GroupRow
from service.groups.schemas import AnyGroupWrite, build_variables
from service.groups.secrets import decrypt, encrypt
from service.http.errors import ConflictError
from service.locations import actions as locations
from service.triggers import triggers
from service.triggers.model import Runs, Target
from service.variables import actions as variables
from service.variables.model import Owner
from service.vault.encryption import Scope
from service.vault.masked_values import Stored, restore_hidden


def create(
    connection: Connection, scope: Scope, body: AnyGroupWrite, *, auto_assign: bool
) -> GroupRow:
    """Set up a group.

    `auto_assign`: all alert channels that it does not name get its alerts too.

    Raises:
        InvalidError: it names a location, a snippet or an alert channel that is not there.
    """
    values, doc = _build_columns(connection, scope, body, stored=None)
    made = {"account_id": scope.account_id, "created_ms": scope.now_ms, "updated_ms": None}
    # Its number, for which secrets are encrypted, is known only then.
    group_id = store.add(connection, {**values, **made, "doc": {}})
    store.change(connection, group_id, _encrypt(scope, group_id, doc))
    choices = read_choices(body.alert_channel_subscriptions)
    alert_channels.subscribe_new(
        connection,
        scope.account_id,
        Subscriber(group_id=group_id),
        choices,
        auto_assign=auto_assign,
    )
    return _store_tags_and_variables(connection, scope, group_id, body, url=_read_base_url(doc))


def replace(connection: Connection, scope: Scope, group_id: int, body: AnyGroupWrite) -> GroupRow:
    """Set a group up anew; its checks go by it from their next run on.

    Raises:
        NotFoundError: the account has no such group.
        InvalidError: it names a location, a snippet or an alert channel that is not there, or one
            of its checks could not run like this.
    """
    before = find(connection, scope.account_id, group_id)
    values, doc = _build_columns(
        connection, scope, body, stored=lambda: decrypt(before, scope.vault).doc
    )
    changed = {**values, **_encrypt(scope, group_id, doc), "updated_ms": scope.now_ms}
    store.change(connection, group_id, changed)
    if "alert_channel_subscriptions" in body.model_fields_set:
        choices = read_choices(body.alert_channel_subscriptions)
        subscriber = Subscriber(group_id=group_id)
        alert_channels.replace_subscriptions(connection, scope.account_id, subscriber, choices)
    group = _store_tags_and_variables(connection, scope, group_id, body, url=_read_base_url(doc))
    check_changes.apply_group(connection, scope, group)
    return group


def delete(connection: Connection, scope: Scope, group_id: int) -> None:
    """Forget a group.

    Raises:
        NotFoundError: the account has no such group.
        ConflictError: checks are in it.
    """
    group = find(connection, scope.account_id, group_id)
    count, names = checks.find_group_users(connection, scope.account_id, group_id)
    if count:
        shown = checks.format_users(count, names)
        raise ConflictError(
            f"The check group {group.name} has {count} checks ({shown}); delete them or remove them"
            " from it first."
        )
    variables.forget(connection, Owner.group(scope.account_id, group_id))
    triggers.forget(connection, Target(Runs.GROUP, str(group_id)))
    store.remove(connection, group_id)


def _build_columns(
    connection: Connection, scope: Scope, body: AnyGroupWrite, *, stored: Stored | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Columns of its row, and its body."""
    doc = restore_hidden(build_doc(body), stored)
    slugs = list(locations.list_ids_by_slug(connection, scope.account_id))
    require_known_locations(doc, slugs, regions=scope.regions)
    find_phases(connection, scope.account_id, doc)
    return {"name": body.name, "form": body.form}, doc


def _encrypt(scope: Scope, group_id: int, doc: Mapping[str, Any]) -> Mapping[str, Any]:
    return encrypt(doc, scope.vault, account_id=scope.account_id, group_id=group_id)


def _store_tags_and_variables(
    connection: Connection, scope: Scope, group_id: int, body: AnyGroupWrite, *, url: str
) -> GroupRow:
    store.replace_tags(connection, group_id, body.tags or [])
    owner = Owner.group(scope.account_id, group_id)
    variables.replace(connection, owner, build_variables(body, url), vault=scope.vault)
    (group,) = complete(connection, [find(connection, scope.account_id, group_id)])
    return group


def _read_base_url(doc: Mapping[str, Any]) -> str:
    url: str = doc["apiCheckDefaults"]["url"]
    return url
