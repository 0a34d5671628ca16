"""What happens to error groups; each is part of the caller's transaction."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from contract.wire import UnreadableMessageError, decode
from service.checks import actions as checks
from service.error_groups import store
from service.error_groups.model import ErrorGroup, Occurrence
from service.error_groups.rules import MOST_READ_CHARS, clean_message, hash_message
from service.http.errors import NotFoundError
from service.results.model import Record, Recorded, ResultType


class _Failure(msgspec.Struct, frozen=True):
    message: str


class _Outcome(msgspec.Struct, frozen=True):
    failure: _Failure | None = None


class _Result(msgspec.Struct, frozen=True):
    """The part of the contract's Result that is read here."""

    outcome: _Outcome


def observe_failures(connection: Connection, recorded: Sequence[Recorded], _now_ms: int) -> None:
    """Put the failed among new results into the groups of their checks; an observer of results.

    A failure counts from when its run started.
    """
    for _, record in recorded:
        if record.status.has_failures and record.result_type is ResultType.FINAL:
            _note(connection, record)


def find(connection: Connection, account_id: str, group_id: str) -> ErrorGroup:
    """A group of the account, archived or not.

    Raises:
        NotFoundError: the account has none with this id.
    """
    group = store.find(connection, account_id, group_id)
    if group is None:
        raise NotFoundError(f"There is no error group {group_id}.")
    return group


def list_of_check(
    connection: Connection, account_id: str, check_id: str, *, limit: int
) -> Sequence[ErrorGroup]:
    """The groups of a check that are not archived, seen last first."""
    return store.list_page(connection, account_id, check_id=check_id, limit=limit, offset=0)


def list_archived(
    connection: Connection, account_id: str, check_id: str, *, limit: int
) -> Sequence[ErrorGroup]:
    """The groups of a check that lists leave out, seen last first."""
    return store.list_archived(connection, account_id, check_id, limit=limit)


def _note(connection: Connection, record: Record) -> None:
    raw = _read_message(record.body)
    if not raw:
        return
    cleaned = clean_message(raw)
    one = Occurrence(
        check_id=record.check_id,
        error_hash=hash_message(cleaned),
        raw=raw[:MOST_READ_CHARS],
        cleaned=cleaned,
        seen_ms=record.started_ms,
    )
    if store.see_again(connection, one):
        return
    owner = checks.find_owner(connection, record.check_id)
    if owner is not None:
        store.add(connection, owner, one)


def _read_message(body: bytes | None) -> str | None:
    """Why the run failed. None: nobody says, or the body is damaged."""
    try:
        failure = decode(body, _Result).outcome.failure if body else None
    except UnreadableMessageError:
        return None
    return failure.message if failure else None
