"""SQL of snippets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from service.db.tables.job_inputs import snippet
from service.snippets.model import SnippetRow

_COLUMNS: Final = (
    snippet.c.id,
    snippet.c.name,
    snippet.c.script,
    snippet.c.created_ms,
    snippet.c.updated_ms,
)
_OF_ACCOUNT: Final = snippet.c.account_id == bindparam("account")
_ALL: Final[Select[Any]] = select(*_COLUMNS).where(_OF_ACCOUNT).order_by(snippet.c.id)
_ONE: Final[Select[Any]] = select(*_COLUMNS).where(
    _OF_ACCOUNT, snippet.c.id == bindparam("snippet")
)
_NAMED: Final = select(snippet.c.id).where(_OF_ACCOUNT, snippet.c.name == bindparam("wanted"))
_NAMES: Final = select(snippet.c.name).where(_OF_ACCOUNT)
_SCRIPTS: Final = select(snippet.c.name, snippet.c.script).where(
    _OF_ACCOUNT, snippet.c.name.in_(bindparam("wanted", expanding=True))
)


def find(connection: Connection, account_id: str, snippet_id: int) -> SnippetRow | None:
    """One snippet. None: the account has none with this id."""
    row = connection.execute(_ONE, {"account": account_id, "snippet": snippet_id}).first()
    return None if row is None else _read(row)


def list_page(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[SnippetRow, ...]:
    """A page of the account's snippets, oldest first."""
    rows = connection.execute(_ALL.limit(limit).offset(offset), {"account": account_id})
    return tuple(map(_read, rows))


def find_id(connection: Connection, account_id: str, name: str) -> int | None:
    """The snippet with this name. None: the account has none."""
    found: int | None = connection.execute(
        _NAMED, {"account": account_id, "wanted": name}
    ).scalar_one_or_none()
    return found


def list_names(connection: Connection, account_id: str) -> frozenset[str]:
    """What the account's snippets are called."""
    return frozenset(connection.execute(_NAMES, {"account": account_id}).scalars())


def list_scripts(connection: Connection, account_id: str, wanted: Iterable[str]) -> dict[str, str]:
    """The scripts of these snippets, by name."""
    rows = connection.execute(_SCRIPTS, {"account": account_id, "wanted": list(wanted)})
    return {row.name: row.script for row in rows}


def add(connection: Connection, values: Mapping[str, Any]) -> int:
    """Store a new snippet; the mapping holds every column but the id, which comes back."""
    made = connection.execute(insert(snippet).values(**values)).inserted_primary_key
    return int(made[0]) if made else 0


def change(connection: Connection, snippet_id: int, values: Mapping[str, Any]) -> None:
    """Change a snippet."""
    connection.execute(update(snippet).where(snippet.c.id == snippet_id).values(**values))


def remove(connection: Connection, snippet_id: int) -> None:
    """Forget a snippet."""
    connection.execute(delete(snippet).where(snippet.c.id == snippet_id))


def _read(row: Row[Any]) -> SnippetRow:
    return SnippetRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
