"""Restoring a backup into an empty data folder.

Everything is unpacked and verified under other names first, and then renamed, the database last:
whatever goes wrong before leaves the folder empty, and an installation is there whole or not.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

import click

from service.backup.archive import About, ArchivedFile, ArchiveError, ArchiveReader
from service.backup.places import DATABASE, KEY_SETTINGS, Places, keys_in_settings, places_of
from service.commands import explained_errors
from service.data_dir import held_folders, private_files
from service.db.migrate import HEAD, known_revisions
from service.errors import CommandError
from service.settings import Settings, read_settings

_STAGED: Final = "restoring-"


def restore(file: Path) -> None:
    """Unpack a backup into the empty folders of the settings, and print what it was.

    Raises:
        CommandError: nothing was restored; says why.
    """
    with explained_errors():
        settings = read_settings()
        with private_files(), held_folders(settings):
            about, files = _restore(settings, file)
    click.echo(f"restored {files} files of {about.created_at} into {settings.data_dir}")


def _restore(settings: Settings, file: Path) -> tuple[About, int]:
    staging = _Staging(places_of(settings))
    staging.clear()
    _require_empty(settings, staging.places)
    try:
        with (
            file.open("rb") as stream,
            ArchiveReader(stream) as reader,
            staging.cleared_on_failure(),
        ):
            _require_fitting(reader.about, staging.places)
            files = reader.unpack(staging.write)
            _require_keys(settings, staging)
            staging.finish()
            return reader.about, files
    except ArchiveError as problem:
        raise CommandError(f"{file} {problem}") from problem
    except OSError as problem:
        raise CommandError(f"{problem.filename or file}: {problem.strerror}") from problem


def _require_empty(settings: Settings, places: Places) -> None:
    database = settings.database_file
    logs = [database.with_name(f"{database.name}-{log}") for log in ("wal", "shm")]
    for path in (*places.files.values(), *places.folders.values(), *logs):
        if path.exists():
            mend = "a backup is restored into an empty data folder; move away what is there"
            raise CommandError(f"{path} is already there; {mend}")


def _require_fitting(about: About, places: Places) -> None:
    """Whether this version can use the database, and the settings say where it is."""
    if about.revision is None and places.database is not None:
        mend = "set DATABASE_URL to the restored database"
        raise ArchiveError(f"is of a service on PostgreSQL and does not have its database; {mend}")
    if about.revision is not None and places.database is None:
        mend = "restore it without DATABASE_URL, and move it by migrate-store afterwards"
        raise ArchiveError(f"has an SQLite database; {mend}")
    if about.revision not in {None, HEAD} and about.revision not in known_revisions():
        mend = f"use Picket {about.release}, or a newer one"
        raise ArchiveError(f"has the database revision {about.revision}, unknown here; {mend}")


def _require_keys(settings: Settings, staging: "_Staging") -> None:
    """Without its keys a database is useless: they are in the archive, or in settings."""
    given = keys_in_settings(settings)
    for name in staging.places.keys:
        if name not in given and not staging.has(name):
            setting = KEY_SETTINGS[name]
            raise ArchiveError(f"does not have {name}; set {setting} as it was at the backup")


class _Staging:
    """Where the files of an archive lie until all of them are verified."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._targets = {**places.folders, **places.files}
        if places.database is not None:
            # The last to be renamed: without it there is no installation.
            self._targets[DATABASE] = self._targets.pop(DATABASE)

    def write(self, file: ArchivedFile) -> None:
        """Write a file of the archive.

        Raises:
            ArchiveError: an installation with these settings has no such file.
        """
        top, *rest = PurePosixPath(file.name).parts
        target = self._targets.get(top)
        if target is None or bool(rest) != (top in self.places.folders):
            raise ArchiveError(f"holds {file.name}, for which these settings have no place")
        path = _staged(target).joinpath(*rest)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as writing:
            while block := file.stream.read():
                writing.write(block)
        # The files of a run are kept for some days, by the time of their folder.
        for changed in (path, *path.parents[: len(rest) - 1]):
            os.utime(changed, (file.changed_s, file.changed_s))

    def has(self, name: str) -> bool:
        """Whether there was this file in the archive."""
        return _staged(self._targets[name]).exists()

    def finish(self) -> None:
        """Put everything in its place."""
        os.sync()
        for target in self._targets.values():
            staged = _staged(target)
            if staged.exists():
                staged.rename(target)
        os.sync()

    def clear(self) -> None:
        """Remove what a restore that was killed has left."""
        for target in self._targets.values():
            staged = _staged(target)
            if staged.is_dir():
                shutil.rmtree(staged)
            else:
                staged.unlink(missing_ok=True)

    @contextmanager
    def cleared_on_failure(self) -> Iterator[None]:
        """Leave nothing half."""
        try:
            yield
        except BaseException:
            self.clear()
            raise


def _staged(target: Path) -> Path:
    return target.with_name(_STAGED + target.name)
