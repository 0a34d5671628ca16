"""Which files of an installation are in its backup, and where each of them lies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.pepper import FILE as PEPPER
from service.settings import PostgresUrl, Settings
from service.vault.startup import FILE as MASTER_KEY

DATABASE: Final = "picket.db"
FOLDERS: Final = ("artifacts", "bundles")


KEY_SETTINGS: Final = {PEPPER: "KEY_PEPPER", MASTER_KEY: "SERVICE_MASTER_KEY"}
"""The setting that stands for each file of a key."""


@dataclass(frozen=True, slots=True)
class Places:
    """The files and folders of an installation, by their names in a backup."""

    database: Path | None
    """None: it is in PostgreSQL."""
    keys: dict[str, Path]
    folders: dict[str, Path]

    @property
    def files(self) -> dict[str, Path]:
        """Everything but the folders."""
        return self.keys | ({} if self.database is None else {DATABASE: self.database})


def places_of(settings: Settings) -> Places:
    """Where an installation with these settings keeps its files."""
    in_postgresql = isinstance(settings.database, PostgresUrl)
    return Places(
        database=None if in_postgresql else settings.database_file,
        keys={
            PEPPER: settings.data_dir / PEPPER,
            MASTER_KEY: settings.database_file.with_name(MASTER_KEY),
        },
        folders={name: settings.data_dir / name for name in FOLDERS},
    )


def keys_in_settings(settings: Settings) -> frozenset[str]:
    """Names of the files of keys that count for nothing, because a setting has the key."""
    given = {PEPPER: settings.key_pepper, MASTER_KEY: settings.master_keys}
    return frozenset(name for name, value in given.items() if value)
