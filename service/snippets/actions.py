"""What everyone asks about snippets; each is part of the caller's transaction."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from contract.checks import Dependency
from contract.scripts import (
    MAX_SCRIPTS_BYTES,
    size_bytes,
    snippet_path,
    snippets_of_scripts,
    snippets_of_snippet,
)
from service.http.errors import InvalidError, NotFoundError
from service.snippets import store
from service.snippets.model import SnippetRow

_MOST: Final = 1 << 63
"""From here on no number is an id."""


def find(connection: Connection, account_id: str, snippet_id: int) -> SnippetRow:
    """A snippet of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, snippet_id)
    if row is None:
        raise NotFoundError(f"There is no snippet {snippet_id}.")
    return row


def find_script(connection: Connection, account_id: str, snippet_id: int) -> str | None:
    """The code of a snippet. None: the account has none with this id."""
    row = store.find(connection, account_id, snippet_id) if 0 < snippet_id < _MOST else None
    return None if row is None else row.script


def collect_files(
    connection: Connection, account_id: str, scripts: Iterable[str]
) -> tuple[Dependency, ...]:
    """The snippets that scripts import, and those that these import, as files beside a script.

    A name that no snippet has is passed over: the script says so when it runs.

    Raises:
        InvalidError: they are more than a job can carry.
    """
    wanted = snippets_of_scripts(scripts)
    known = store.list_names(connection, account_id) if wanted else frozenset()
    found: dict[str, str] = {}
    while more := (wanted & known) - found.keys():
        scripts_of = store.list_scripts(connection, account_id, sorted(more))
        found.update(scripts_of)
        wanted = frozenset().union(*map(snippets_of_snippet, scripts_of.values()))
    _require_size(found.values())
    return tuple(Dependency(path=snippet_path(name), content=found[name]) for name in sorted(found))


def _require_size(scripts: Iterable[str]) -> None:
    size = sum(map(size_bytes, scripts))
    if size > MAX_SCRIPTS_BYTES:
        raise InvalidError(
            f"The snippets that a script imports have {size} bytes together; use at most"
            f" {MAX_SCRIPTS_BYTES}.",
            keys=("script",),
        )


def list_all(connection: Connection, account_id: str, *, limit: int) -> tuple[SnippetRow, ...]:
    """The first snippets of an account."""
    return store.list_page(connection, account_id, limit=limit, offset=0)
