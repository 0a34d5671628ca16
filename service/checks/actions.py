"""What everyone else asks about checks; each is part of the caller's transaction.

Setting checks up stands in `service.checks.changes`, which itself asks the features that ask here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row

from contract.checks import CheckType
from service.alert_channels import actions as alert_channels
from service.checks import store
from service.checks.model import (
    CheckLabels,
    CheckName,
    CheckRow,
    CheckTerms,
    CheckToRun,
    ServiceCheck,
)
from service.checks.secrets import UNREADABLE_SPEC, decrypt_bodies, decrypt_spec, encrypt
from service.http.errors import NotFoundError
from service.variables import actions as variables
from service.vault.encryption import DecryptionError, Vault
from service.vault.reencrypt import EncryptedTable


def format_users(count: int, names: Sequence[str]) -> str:
    """The first names of the checks that use something, for a refusal."""
    return ", ".join(names) + (" and others" if count > len(names) else "")


def find(connection: Connection, account_id: str, check_id: str) -> CheckRow:
    """A check of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, check_id)
    if row is None:
        raise NotFoundError(f"There is no check {check_id}.")
    return row


def complete(connection: Connection, rows: Iterable[CheckRow]) -> tuple[CheckRow, ...]:
    """The checks with their own variables and their subscriptions, as the API shows them."""
    checks = tuple(rows)
    found = variables.find_of_checks(connection, [check.id for check in checks])
    alerts = alert_channels.find_of_checks(
        connection, {check.id: check.group_id for check in checks}
    )
    return tuple(
        replace(check, variables=found.get(check.id, ()), alerts=alerts[check.id])
        for check in checks
    )


def list_members(
    connection: Connection, account_id: str, group_id: int, *, limit: int, offset: int
) -> tuple[CheckRow, ...]:
    """A page of a group's checks, in the order in which the group runs them."""
    return store.list_members(connection, account_id, group_id, limit=limit, offset=offset)


def find_member(connection: Connection, account_id: str, group_id: int, check_id: str) -> CheckRow:
    """A check of a group.

    Raises:
        NotFoundError: the account has no such group, or the group no such check.
    """
    row = store.find(connection, account_id, check_id)
    if row is None or row.group_id != group_id:
        raise NotFoundError(f"There is no check {check_id} in the check group {group_id}.")
    return row


def find_group_users(
    connection: Connection, account_id: str, group_id: int
) -> tuple[int, tuple[str, ...]]:
    """How many checks are in a group, and the names of the first few."""
    found = store.list_member_names(connection, account_id, group_id)
    return len(found), tuple(one.name for one in found[:4])


def list_member_names(
    connection: Connection, account_id: str, group_id: int
) -> tuple[CheckName, ...]:
    """All checks of a group, in its order, without what they hold."""
    return store.list_member_names(connection, account_id, group_id)


def list_runnable_members(
    connection: Connection, account_id: str, group_id: int
) -> tuple[CheckRow, ...]:
    """All checks of a group that run, in its order."""
    return tuple(
        row for row in store.list_members(connection, account_id, group_id) if row.activated
    )


def list_names(connection: Connection, account_id: str) -> tuple[CheckName, ...]:
    """All checks of the account, oldest first, without what they hold."""
    return store.list_names(connection, account_id)


def list_labels(connection: Connection, account_id: str) -> tuple[CheckLabels, ...]:
    """All checks of the account, oldest first, with their tags."""
    return store.list_labels(connection, account_id)


def list_of_services(
    connection: Connection, account_id: str, service_ids: Sequence[str]
) -> tuple[ServiceCheck, ...]:
    """The checks whose failures open incidents of these services, oldest first."""
    return store.list_of_services(connection, account_id, service_ids)


def find_name(connection: Connection, account_id: str, check_id: str) -> CheckName:
    """A check of the account, without what it holds.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = find(connection, account_id, check_id)
    return CheckName(id=row.id, type=CheckType(row.type), name=row.name, created_ms=row.created_ms)


def find_runnable(
    connection: Connection,
    account_id: str,
    *,
    check_ids: Collection[str] | None = None,
    any_of_tags: Collection[str] | None = None,
) -> Iterator[CheckToRun]:
    """Activated checks, oldest first: those with these ids or, of any ids, with one of these tags.

    None: any.
    """
    return store.find_runnable(connection, account_id, check_ids=check_ids, any_of_tags=any_of_tags)


def find_terms(connection: Connection, check_id: str) -> CheckTerms | None:
    """On what terms a check runs, whosever it is. None: there is no such check."""
    return store.find_terms(connection, check_id)


def find_types(connection: Connection, check_ids: Iterable[str]) -> Mapping[str, CheckType]:
    """The type of each of these checks that there is, whosever it is."""
    return store.find_types(connection, check_ids)


def find_own_types(
    connection: Connection, account_id: str, check_ids: Sequence[str]
) -> Mapping[str, CheckType]:
    """The type of each of these checks that the account has, in their order."""
    found = store.find_own_types(connection, account_id, check_ids)
    return {one: found[one] for one in dict.fromkeys(check_ids) if one in found}


def find_owner(connection: Connection, check_id: str) -> str | None:
    """Whose a check is. None: there is no such check."""
    found = store.find_terms(connection, check_id)
    return found.account_id if found else None


def find_owners(connection: Connection, check_ids: Iterable[str]) -> Mapping[str, str]:
    """Whose each of these checks is that there is."""
    return store.find_owners(connection, check_ids)


def find_locations(connection: Connection, check_id: str) -> tuple[str, ...]:
    """The ids of the locations where a check runs, in the order of its round robin."""
    return store.find_locations(connection, check_id)


def find_locations_of_many(
    connection: Connection, check_ids: Iterable[str]
) -> Mapping[str, Sequence[str]]:
    """The locations of several checks, by check; a check without any is left out."""
    return store.find_locations_of_many(connection, check_ids)


def find_location_users(connection: Connection, location_id: str) -> tuple[int, tuple[str, ...]]:
    """How many checks run at a location, and the names of the first few."""
    return store.find_location_users(connection, location_id)


def list_locations_in_use(connection: Connection, location_ids: Iterable[str]) -> set[str]:
    """Those of these locations where any activated check runs."""
    return store.list_locations_in_use(connection, location_ids)


def find_snippet_users(
    connection: Connection, account_id: str, snippet_id: int
) -> tuple[int, tuple[str, ...]]:
    """How many checks have a snippet as a phase, and the names of the first few."""
    names = store.find_snippet_users(connection, account_id, snippet_id)
    return len(names), names[:4]


def find_bundle_owner(connection: Connection, location_id: str, sha256: str) -> str | None:
    """The account whose check of this location needs the bundle or snapshot. None: none does."""
    return store.find_bundle_owner(connection, location_id, sha256)


def list_bundles_in_use(connection: Connection) -> frozenset[str]:
    """The content hashes of all bundles that checks run."""
    return store.list_bundles_in_use(connection)


def list_snapshots_in_use(connection: Connection) -> frozenset[str]:
    """The content hashes of all snapshots that checks compare with."""
    return store.list_snapshots_in_use(connection)


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    named = {"account_id": row.account_id, "check_id": row.id}
    stored = {"doc": row.doc, "applied": row.applied}
    whole = decrypt_bodies(stored, row.secrets, vault, **named)
    try:
        spec = decrypt_spec(row.spec, vault, **named)
    except DecryptionError:
        # It must not bind the check's secrets to a key that is to go.
        spec = UNREADABLE_SPEC
    return encrypt({**whole, "spec": spec}, vault, **named)


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="checks.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"check_id": row.id},
)
