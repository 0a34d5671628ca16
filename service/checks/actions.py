"""What everyone else asks about checks; each is part of the caller's transaction.

Setting checks up stands in `service.checks.changes`, which itself asks the features that ask here.
"""

from sqlalchemy import Connection

from service.checks import store
from service.checks.model import CheckFilter, CheckRow, CheckTerms
from service.http.errors import NotFoundError


def find(connection: Connection, account_id: str, check_id: str) -> CheckRow:
    """A check of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, check_id)
    if row is None:
        raise NotFoundError(f"There is no check {check_id}.")
    return row


def matching(
    connection: Connection, account_id: str, wanted: CheckFilter, *, limit: int, offset: int
) -> tuple[CheckRow, ...]:
    """A page of the account's checks that match, oldest first."""
    return store.matching(connection, account_id, wanted, limit=limit, offset=offset)


def activated(connection: Connection, account_id: str) -> tuple[CheckRow, ...]:
    """All checks of the account that run, oldest first."""
    return store.activated(connection, account_id)


def terms(connection: Connection, check_id: str) -> CheckTerms | None:
    """On what terms a check runs, whosever it is. None: there is no such check."""
    return store.terms(connection, check_id)


def locations_of(connection: Connection, check_id: str) -> tuple[str, ...]:
    """The ids of the locations where a check runs, in the order of its round robin."""
    return store.locations_of(connection, check_id)


def users_of(connection: Connection, location_id: str) -> tuple[int, tuple[str, ...]]:
    """How many checks run at a location, and the names of the first few."""
    return store.users_of(connection, location_id)


def places_in_use(connection: Connection) -> set[str]:
    """The ids of the locations where any activated check runs."""
    return store.places_in_use(connection)


def users_of_snippet(
    connection: Connection, account_id: str, snippet_id: int
) -> tuple[int, tuple[str, ...]]:
    """How many checks have a snippet as a phase, and the names of the first few."""
    names = store.users_of_snippet(connection, account_id, snippet_id)
    return len(names), names[:4]


def owner_of_bundle(connection: Connection, location_id: str, sha256: str) -> str | None:
    """The account whose check of this location runs the bundle. None: none does."""
    return store.owner_of_bundle(connection, location_id, sha256)


def bundles_in_use(connection: Connection) -> frozenset[str]:
    """The content hashes of all bundles that checks run."""
    return store.bundles_in_use(connection)
