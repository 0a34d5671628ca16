"""A copy of the SQLite database while services use it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 20.0


class DamagedDatabaseError(Exception):
    """The database cannot be read whole; the rest of a sentence that begins with its name."""


def copy_database(database: Path, copy: Path) -> str:
    """Copy the state after the last commit into a new file; the revision of its schema.

    The service goes on writing meanwhile. What it has deleted is not in the copy's free pages.

    Raises:
        DamagedDatabaseError: the file is no database of the service, or damaged.
    """
    try:
        with closing(_open(database)) as source:
            source.execute("VACUUM INTO ?", (str(copy),))
        with closing(_open(copy)) as copied:
            [(verdict,), *_] = copied.execute("PRAGMA quick_check(1)")
            if verdict != "ok":
                raise DamagedDatabaseError(f"is damaged: {verdict}")
            [(revision,)] = copied.execute("SELECT version_num FROM alembic_version")
    except sqlite3.Error as problem:
        raise DamagedDatabaseError(f"cannot be copied: {problem}") from problem
    return str(revision)


def _open(file: Path) -> sqlite3.Connection:
    """The file, which must be there."""
    uri = f"{file.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S, isolation_level=None)
