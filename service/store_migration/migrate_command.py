"""The command that moves an installation's database: from where, to where, and what it prints."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
from sqlalchemy.exc import DBAPIError

from service.commands import explained_errors
from service.data_dir import held_folders, make_own_file, private_files
from service.errors import CommandError
from service.settings import PostgresUrl, Settings, parse_database, read_settings
from service.store_migration.migration import MovableStore, MovedTable, move
from service.store_migration.model import MigrationError
from service.store_migration.postgresql import PostgresStore
from service.store_migration.sqlite import SqliteStore
from service.vault.startup import FILE as MASTER_KEY

_POSTGRESQL: Final = "postgresql"
_SQLITE: Final = "sqlite"
_DATABASE_FILE: Final = "picket.db"


@dataclass(frozen=True, slots=True)
class Move:
    """The two ends of a move, one of which is a file."""

    source: Path | PostgresUrl
    target: Path | PostgresUrl

    @property
    def file(self) -> Path:
        """The SQLite end."""
        return self.source if isinstance(self.source, Path) else _as_path(self.target)


def migrate_store(to: str) -> None:
    """Move the database of a stopped service to another engine, and print what is there then.

    Raises:
        CommandError: it was not moved; says why.
    """
    with explained_errors():
        settings = read_settings()
        chosen = choose_move(settings, to)
        with private_files(), held_folders(replace(settings, database=chosen.file)):
            _carry_out(settings, chosen)
    click.echo(f"keys, artifacts and bundles stay in {settings.data_dir}")


def choose_move(settings: Settings, to: str) -> Move:
    """From where to where: `to` is an address, or the name of an engine and settings have the rest.

    Raises:
        CommandError: the settings do not say one of the two, or both are of one engine.
    """
    target = _parse_target(settings, to)
    source = settings.database
    if isinstance(target, PostgresUrl):
        file = source if isinstance(source, Path) else settings.data_dir / _DATABASE_FILE
        if not file.is_file():
            raise CommandError(f"there is no database at {file}; set SERVICE_DATA_DIR")
        return Move(file, target)
    if isinstance(source, Path):
        mend = "set it to the postgresql:// address of the database to move"
        raise CommandError(f"DATABASE_URL names no PostgreSQL database; {mend}")
    return Move(source, target)


def _parse_target(settings: Settings, to: str) -> Path | PostgresUrl:
    if to == _SQLITE:
        return settings.data_dir / _DATABASE_FILE
    if to != _POSTGRESQL:
        try:
            return parse_database(to)
        except ValueError as problem:
            raise CommandError(f"--to {problem}, or sqlite, or postgresql") from problem
    if isinstance(settings.database, Path):
        mend = "set it to a postgresql:// address, or name one by --to"
        raise CommandError(f"DATABASE_URL names no PostgreSQL database; {mend}")
    return settings.database


def _carry_out(settings: Settings, chosen: Move) -> None:
    source, target = _open(chosen.source), _open(chosen.target)
    try:
        _bring_master_key(settings, chosen)
        _print_tables(move(source, target))
    except MigrationError as problem:
        raise CommandError(str(problem)) from problem
    except DBAPIError as problem:
        mend = "run the command again to go on"
        raise CommandError(f"a database failed: {problem.orig}; {mend}", own_fault=True) from None
    finally:
        source.engine.dispose()
        target.engine.dispose()
    click.echo(f"{target.name} has every row of {source.name}; counted and compared by SHA-256")


def _open(where: Path | PostgresUrl) -> MovableStore:
    return SqliteStore(where) if isinstance(where, Path) else PostgresStore(where.value)


def _bring_master_key(settings: Settings, chosen: Move) -> None:
    """It lies beside the database, or in the data folder where that is in PostgreSQL."""
    before, after = (
        replace(settings, database=end).database_file.with_name(MASTER_KEY)
        for end in (chosen.source, chosen.target)
    )
    if before == after or settings.master_keys or not before.is_file():
        return
    key = before.read_bytes()
    if not after.exists():
        make_own_file(after, key)
    elif after.read_bytes() != key:
        raise MigrationError(f"{after} has another key than {before}; move it away")


def _print_tables(tables: Iterable[MovedTable]) -> None:
    moved = list(tables)
    click.echo(f"{'table':<26}{'rows':>10}{'copied now':>12}  SHA-256")
    filled = [table for table in moved if table.digest.rows]
    for table in filled:
        counts = f"{table.digest.rows:>10}{table.copied:>12}"
        click.echo(f"{table.name:<26}{counts}  {table.digest.sha256[:16]}")
    click.echo(f"{len(moved) - len(filled)} more tables are empty")


def _as_path(end: Path | PostgresUrl) -> Path:
    if isinstance(end, PostgresUrl):
        raise CommandError("both databases are in PostgreSQL; use pg_dump and pg_restore")
    return end
