"""`picket status-page export`: a status page as files that need no service."""

import asyncio
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from picket.errors import CommandError, ExitCode
from picket.service_access import use_api
from picket.terminal import Terminal, printable

_FILE_NAME: Final = re.compile(r"[a-z]+\.[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What to export, and where to."""

    wanted: str
    """The address of the page, the last part of it, or its name."""
    out: Path
    at: str | None
    """Where the files will stand, for the links in feeds. None: the page's own address."""
    data_dir: Path
    environ: Mapping[str, str]


def export_page(options: ExportOptions, terminal: Terminal) -> int:
    """Write the page's files into a folder, replacing those of an earlier export."""
    if options.at is not None and urlsplit(options.at).scheme not in ("http", "https"):
        raise CommandError(f"--at is {options.at}, which must begin with https:// or http://")
    name, packed = asyncio.run(download_page(options))
    out = options.out
    count = write_files(packed, out)
    said = f"Wrote {count} files of {printable(name)} to {out}; any file server can serve them."
    terminal.print(said, markup=False, highlight=False)
    return ExitCode.OK


async def download_page(options: ExportOptions) -> tuple[str, bytes]:
    """The page's name, and its files as ZIP.

    Raises:
        CommandError: there is no such page, or the service refuses the key or does not answer.
    """
    async with use_api(options.environ, options.data_dir) as api:
        page = choose_page(await api.status_pages(), options.wanted)
        query = f"?at={quote(options.at, safe='')}" if options.at else ""
        return str(page["name"]), await api.file(f"/status/{page['url']}/export.zip{query}")


def choose_page(pages: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    """The page with this address, or the only one with this name.

    Raises:
        CommandError: there is none, or several have the name.
    """
    url = urlsplit(wanted).path.rstrip("/").rpartition("/")[2] if "://" in wanted else wanted
    for page in pages:
        if url == page["url"]:
            return page
    found = [page for page in pages if wanted == page["name"]]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(page["url"]) for page in found or pages) or "none at all"
    if found:
        raise CommandError(f"{len(found)} status pages are named {wanted}; use one of {known}")
    raise CommandError(f"there is no status page {wanted}; the account has {known}")


def write_files(packed: bytes, out: Path) -> int:
    """Write the files of an export; returns how many there are.

    Raises:
        CommandError: they are none, or cannot be written there.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            names = archive.namelist()
            for name in names:
                if not _FILE_NAME.fullmatch(name):
                    raise CommandError(
                        f"the service sent a file named {name!r}; nothing more was written",
                        ExitCode.OWN_FAULT,
                    )
            out.mkdir(parents=True, exist_ok=True)
            for name in names:
                _replace(out / name, archive.read(name))
    except zipfile.BadZipFile as problem:
        raise CommandError(
            "the service did not send an export; is it older than this command?",
            ExitCode.OWN_FAULT,
        ) from problem
    except OSError as problem:
        raise CommandError(f"{problem.filename or out}: {problem.strerror}") from problem
    return len(names)


def _replace(path: Path, content: bytes) -> None:
    """Whoever reads the file meanwhile gets the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)
