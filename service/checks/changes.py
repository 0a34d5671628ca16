"""Creates, changes and removes checks, and reschedules them."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from contract.checks import CheckType
from service.alert_channels import actions as alert_channels
from service.alert_channels.model import Subscriber
from service.alerting import actions as alerting
from service.checks import store
from service.checks.actions import complete, find
from service.checks.fields import read_choices
from service.checks.model import LOCATION_FIELDS, CheckRow
from service.checks.resolve import (
    AccountLocations,
    ResolvedCheck,
    build_doc,
    read_locations,
    read_variables,
    resolve_check,
)
from service.checks.schemas import CheckWrite
from service.checks.secrets import decrypt, decrypt_spec, encrypt
from service.checks.types.heartbeat import HeartbeatCheckWrite
from service.db.ids import new_id
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.groups.secrets import decrypt as decrypt_group
from service.groups.secrets import decrypt_for_people as decrypt_group_for_people
from service.heartbeats import actions as heartbeats
from service.http.errors import ConflictError, InvalidError
from service.jobs import actions as jobs
from service.scheduling import actions as scheduling
from service.sessions import actions as sessions
from service.status_pages import actions as status_pages
from service.triggers import triggers
from service.triggers.model import Runs, Target
from service.variables import actions as variables
from service.variables.model import Owner
from service.vault.encryption import DecryptionError, Scope, Vault
from service.vault.masked_values import Stored, restore_hidden

log = structlog.get_logger()


def create(
    connection: Connection, scope: Scope, check: CheckWrite, *, auto_assign: bool
) -> CheckRow:
    """Set up a check; it runs from now on if it is activated.

    `auto_assign`: all alert channels that it does not name get its alerts too.

    Raises:
        InvalidError: it names a group, location, snippet, bundle, service or alert channel that is
            not there, or no location.
        ConflictError: its ping token is another check's.
        UnreadableError: secrets of its group cannot be decrypted.
    """
    check_id, doc = new_id(scope.now_ms), build_stored_doc(check, stored=None, kept_token=None)
    _require_incident_service(connection, scope, doc)
    group = groups.find_named(connection, scope.account_id, doc["groupId"])
    whole_group = decrypt_group_for_people(group, scope.vault) if group else None
    effect = resolve_whole(connection, scope, doc, kind=check.kind, group=whole_group)
    row = {
        **_encrypt(scope, check_id, {**_columns(doc), **effect.columns}),
        "id": check_id,
        "account_id": scope.account_id,
        "type": check.kind.value,
        "version": 1,
        "created_ms": scope.now_ms,
        "updated_ms": None,
    }
    store.insert_check(connection, row)
    _store_tags_and_locations(connection, check_id, tags=doc["tags"], effect=effect)
    _put_variables(connection, scope, check_id, check)
    choices = read_choices(check.alert_channel_subscriptions)
    alert_channels.subscribe_new(
        connection,
        scope.account_id,
        Subscriber(check_id=check_id),
        choices,
        auto_assign=auto_assign,
    )
    _watch(connection, check_id, _ping_token(doc))
    scheduling.plan(connection, check_id, now_ms=scope.now_ms)
    return _find_with_variables(connection, scope, check_id)


def replace(connection: Connection, scope: Scope, check_id: str, check: CheckWrite) -> CheckRow:
    """Set a check up anew; what is left out takes its default, but ping token and channels stay.

    Raises:
        NotFoundError: the account has no such check.
        InvalidError: it is of another type, or names a group, location, snippet, bundle, service
            or alert channel that is not there, or no location.
        UnreadableError: secrets of its group cannot be decrypted and its own can: it would run no
            more.
    """
    before = find(connection, scope.account_id, check_id)
    _require_same_type(before, check)
    doc = build_stored_doc(
        check,
        stored=lambda: decrypt(before, scope.vault).doc,
        kept_token=_ping_token(before.doc),
    )
    doc = {**_keep_script(check, before), **doc}
    _require_incident_service(connection, scope, doc)
    group = groups.find_named(connection, scope.account_id, doc["groupId"])
    opens = decrypt_group_for_people if _is_whole(connection, scope, before) else _decrypt_group
    whole_group = opens(group, scope.vault) if group else None
    effect = resolve_whole(connection, scope, doc, kind=check.kind, group=whole_group)
    values = _encrypt(scope, check_id, {**_columns(doc), **effect.columns})
    store.update_check(connection, check_id, {**values, "updated_ms": scope.now_ms})
    _store_tags_and_locations(connection, check_id, tags=doc["tags"], effect=effect)
    _put_variables(connection, scope, check_id, check)
    if "alert_channel_subscriptions" in check.model_fields_set:
        choices = read_choices(check.alert_channel_subscriptions)
        subscriber = Subscriber(check_id=check_id)
        alert_channels.replace_subscriptions(connection, scope.account_id, subscriber, choices)
    _reschedule(connection, scope, before, effect=effect, token=_ping_token(doc))
    return _find_with_variables(connection, scope, check_id)


def _keep_script(check: CheckWrite, before: CheckRow) -> Mapping[str, Any]:
    """A script that only another path takes for checks of this type."""
    is_taken = "script" in type(check).model_fields
    return {} if is_taken or "script" not in before.doc else {"script": before.doc["script"]}


def _require_incident_service(connection: Connection, scope: Scope, doc: Mapping[str, Any]) -> None:
    """Refuse a `triggerIncident` whose incidents could not touch anything."""
    if wanted := doc.get("triggerIncident"):
        status_pages.require_services(
            connection,
            scope.account_id,
            [wanted["serviceId"]],
            field="triggerIncident.serviceId",
        )


def _require_same_type(before: CheckRow, check: CheckWrite) -> None:
    if before.type != check.kind.value:
        path = f"/v1/checks/{CheckType(before.type).path_segment}/{before.id}"
        raise InvalidError(
            f"The check is of type {before.type}; use PUT {path}.", keys=("id",), source="path"
        )


def delete(connection: Connection, scope: Scope, check_id: str) -> None:
    """Forget a check; its runs that wait are dropped, those that run are told to stop.

    Raises:
        NotFoundError: the account has none with this id.
    """
    find(connection, scope.account_id, check_id)
    jobs.drop_jobs(connection, check_id)
    sessions.abandon(connection, check_id, now_ms=scope.now_ms)
    alerting.abandon(connection, check_id, now_ms=scope.now_ms)
    triggers.forget(connection, Target(Runs.CHECK, check_id))
    variables.forget(connection, Owner.check(scope.account_id, check_id))
    store.delete_check(connection, check_id)


def apply_group(connection: Connection, scope: Scope, group: GroupRow) -> None:
    """A group has changed: its checks go by its settings from their next run on.

    Raises:
        InvalidError: one of them cannot run with these settings.
    """
    changed = _find_changed(connection, scope, decrypt_group(group, scope.vault))
    effects = {row.id: _encrypt_member(scope, row, one) for row, one in changed}
    store.update_resolved(connection, effects)
    for row, one in changed:
        if any(row.effective[field] != one.columns["applied"][field] for field in LOCATION_FIELDS):
            store.replace_locations(connection, row.id, one.location_ids)
        if one.activated != row.activated:
            _reschedule(connection, scope, row, effect=one, token=_ping_token(row.doc))


def _find_changed(
    connection: Connection, scope: Scope, group: GroupRow
) -> list[tuple[CheckRow, ResolvedCheck]]:
    """The checks of a group that come to something else by it now."""
    owned = read_locations(connection, scope)
    specs = store.find_specs(connection, group.id)
    changed = []
    for stored in store.list_members(connection, scope.account_id, group.id):
        row = _decrypt_member(stored, scope)
        effect = _resolve_member(connection, owned, row, group)
        if not effect.is_of(row, _decrypt_spec(scope, row.id, specs[row.id])):
            changed.append((row, effect))
    return changed


def _decrypt_member(stored: CheckRow, scope: Scope) -> CheckRow:
    """A check that cannot be decrypted stays as stored: the others of its group must not wait."""
    try:
        return decrypt(stored, scope.vault)
    except DecryptionError as problem:
        log.exception("checks.unreadable", check_id=stored.id, reason=str(problem))
        return stored


def _encrypt_member(scope: Scope, row: CheckRow, effect: ResolvedCheck) -> dict[str, Any]:
    columns = _encrypt(scope, row.id, {"doc": row.doc, **effect.columns})
    # One that cannot be decrypted keeps its own, which a key that is brought back may open.
    return columns if row.secrets is None else {**columns, "secrets": row.secrets}


def _decrypt_spec(scope: Scope, check_id: str, stored: bytes) -> bytes | None:
    """None: it cannot be decrypted, so that whatever takes its place is another one."""
    try:
        return decrypt_spec(stored, scope.vault, account_id=scope.account_id, check_id=check_id)
    except DecryptionError:
        return None


def _encrypt(scope: Scope, check_id: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    return encrypt(columns, scope.vault, account_id=scope.account_id, check_id=check_id)


def resolve_whole(
    connection: Connection,
    scope: Scope,
    doc: Mapping[str, Any],
    *,
    kind: CheckType,
    group: GroupRow | None,
) -> ResolvedCheck:
    """What a check with these settings comes to in this group; no group: it is in none.

    Raises:
        InvalidError: it names something that is not there.
    """
    owned = read_locations(connection, scope)
    effect = resolve_check(connection, owned, doc, kind=kind, group=group)
    lacks_secrets = group is not None and group.secrets is not None and kind is CheckType.API
    return effect.without_spec if lacks_secrets else effect


def _is_whole(connection: Connection, scope: Scope, row: CheckRow) -> bool:
    """Whether all secrets of a check can be decrypted, so that it runs."""
    terms = store.find_terms(connection, row.id)
    try:
        decrypt(row, scope.vault)
    except DecryptionError:
        return False
    return terms is not None and _decrypt_spec(scope, row.id, terms.spec) is not None


def _decrypt_group(stored: GroupRow, vault: Vault) -> GroupRow:
    """A group that cannot be decrypted stays as stored: its checks can be repaired before it."""
    try:
        return decrypt_group(stored, vault)
    except DecryptionError as problem:
        log.exception("groups.unreadable", group_id=str(stored.id), reason=str(problem))
        return stored


def _resolve_member(
    connection: Connection, owned: AccountLocations, row: CheckRow, group: GroupRow
) -> ResolvedCheck:
    kind = CheckType(row.type)
    try:
        effect = resolve_check(connection, owned, row.doc, kind=kind, group=group)
    except InvalidError as problem:
        sentence = f"The check {row.name} could not run like this: {problem.message}"
        raise InvalidError(sentence, keys=problem.keys) from problem
    return effect if row.secrets is None else effect.without_spec


def _reschedule(
    connection: Connection,
    scope: Scope,
    before: CheckRow,
    *,
    effect: ResolvedCheck,
    token: str | None,
) -> None:
    """Plan the runs of a check that has changed; activating a heartbeat starts its timer over."""
    _watch(connection, before.id, token)
    if token is not None and effect.activated != before.activated:
        heartbeats.reset_timer(connection, before.id, now_ms=scope.now_ms)
    scheduling.plan(connection, before.id, now_ms=scope.now_ms)


def build_stored_doc(
    check: CheckWrite, *, stored: Stored | None, kept_token: str | None
) -> Mapping[str, Any]:
    """The check as it is stored; a heartbeat that sends no token keeps the one that it has."""
    doc = dict(restore_hidden(build_doc(check), stored))
    if isinstance(check, HeartbeatCheckWrite):
        token = check.heartbeat.ping_token or kept_token or str(uuid.uuid4())
        doc["heartbeat"]["pingToken"] = token
    return doc


def _ping_token(doc: Mapping[str, Any]) -> str | None:
    """Heartbeats have a ping token; None: it is none."""
    token: str | None = doc.get("heartbeat", {}).get("pingToken")
    return token


def _columns(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": doc["name"],
        "frequency": doc["frequency"],
        "frequency_offset": doc["frequencyOffset"],
        "doc": doc,
    }


def _store_tags_and_locations(
    connection: Connection, check_id: str, *, tags: Sequence[str], effect: ResolvedCheck
) -> None:
    store.replace_tags(connection, check_id, tags)
    store.replace_locations(connection, check_id, effect.location_ids)


def _put_variables(connection: Connection, scope: Scope, check_id: str, check: CheckWrite) -> None:
    wanted = read_variables(check)
    if wanted is not None:
        owner = Owner.check(scope.account_id, check_id)
        variables.replace(connection, owner, wanted, vault=scope.vault)


def _find_with_variables(connection: Connection, scope: Scope, check_id: str) -> CheckRow:
    (row,) = complete(connection, [find(connection, scope.account_id, check_id)])
    return row


def _watch(connection: Connection, check_id: str, token: str | None) -> None:
    if token is None:
        return
    try:
        heartbeats.watch(connection, check_id, token)
    except IntegrityError as problem:
        raise ConflictError(
            "This pingToken belongs to another check; use another one, or omit it to get a new one."
        ) from problem
