"""Writing a backup while the service runs.

The database is copied before the files: a file is in its place before the database names it, so
every file that the copy names is in the backup, but for those that were deleted meanwhile.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from contract.release import RELEASE
from service.backup.archive import FORMAT, About, ArchiveWriter
from service.backup.places import DATABASE, KEY_SETTINGS, Places, keys_in_settings, places_of
from service.backup.sqlite import DamagedDatabaseError, copy_database
from service.commands import explained_errors
from service.errors import CommandError
from service.settings import Settings, read_settings

_UNFINISHED: Final = ".part"
"""How names of files end that are still being uploaded."""


def back_up(file: Path) -> None:
    """Write the installation of the settings to a new file, and print what it has.

    Raises:
        CommandError: there is no backup; says why.
    """
    with explained_errors():
        settings = read_settings()
        _write(settings, file)
    for sentence in _remarks(settings):
        click.echo(sentence, err=True)


def _write(settings: Settings, file: Path) -> None:
    places = _kept_places(settings)
    if file.exists():
        raise CommandError(f"{file} is already there; choose another name, or move it away")
    try:
        # Beside the file: a copy in the service's folder could fill its disk.
        with TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as work:
            written = _archive(places, Path(work))
            size = written.stat().st_size
            written.replace(file)
            _sync(file.parent)
    except DamagedDatabaseError as problem:
        raise CommandError(f"{places.database} {problem}") from problem
    except OSError as problem:
        raise CommandError(f"{file} cannot be written: {problem.strerror}") from problem
    click.echo(f"wrote {file}, {size} bytes")


def _kept_places(settings: Settings) -> Places:
    """What there is to back up: all of it, but for keys that settings have."""
    places = places_of(settings)
    given = keys_in_settings(settings)
    keys = {name: path for name, path in places.keys.items() if name not in given}
    kept = replace(places, keys=keys)
    for name, path in kept.files.items():
        if not path.is_file():
            mend = "use the SERVICE_DATA_DIR and DATABASE_URL of a service that has started once"
            raise CommandError(f"there is no {name} at {path}; {mend}")
    return kept


def _archive(places: Places, work: Path) -> Path:
    """The whole archive, on disk."""
    sources, revision = dict(places.keys), None
    if places.database is not None:
        sources[DATABASE] = work / DATABASE
        revision = copy_database(places.database, sources[DATABASE])
    about = About(
        format=FORMAT,
        release=RELEASE,
        revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    target = work / "archive"
    with target.open("xb") as stream, ArchiveWriter(stream, about) as writer:
        target.chmod(0o600)
        for name, path in [*sources.items(), *_files_of(places)]:
            # One of a run may have been deleted since it was listed.
            with suppress(FileNotFoundError), path.open("rb") as source:
                writer.add(name, source)
        writer.finish()
        stream.flush()
        os.fsync(stream.fileno())
    return target


def _files_of(places: Places) -> Iterator[tuple[str, Path]]:
    """Every file of the folders with its name in the archive."""
    for name, top in places.folders.items():
        for folder, _, files in os.walk(top):
            for file in files:
                path = Path(folder, file)
                if path.suffix != _UNFINISHED:
                    yield str(Path(name, path.relative_to(top))), path


def _sync(folder: Path) -> None:
    """A new name outlasts a power cut only once its folder is on disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _remarks(settings: Settings) -> Iterator[str]:
    yield "Whoever can read this file can read every secret of the installation; keep it safe."
    for name in sorted(keys_in_settings(settings)):
        yield f"It does not have {KEY_SETTINGS[name]}; the restored service needs the same."
    if settings.artifact_store is not None:
        yield "It does not have the files of results that are in the bucket; copy that as well."
    if places_of(settings).database is None:
        yield "It does not have the database, which is in PostgreSQL; run pg_dump before."
