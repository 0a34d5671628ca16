"""`picket export`: writes what a service has as files for `picket apply`."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from picket.api_client import PublicApi
from picket.check_file.load import StrictLoader
from picket.code.exporting.api_defaults import ApiDefaults
from picket.code.exporting.written_documents import (
    Account,
    Written,
    is_inside,
    write_documents,
)
from picket.code.reading.documents import PROJECT_FILE, slug_of
from picket.errors import CommandError, ExitCode
from picket.service_access import use_api
from picket.terminal import Terminal, printable

_PROJECTS: Final = "/v1/projects"
_EXAMPLE: Final = ".env.example"
_WIDTH: Final = 100
_ODD_BREAKS: Final = re.compile("[\r\x85\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Where to write, and from which service."""

    folder: Path
    data_dir: Path
    environ: Mapping[str, str]


def export_files(options: ExportOptions, terminal: Terminal) -> int:
    """Write the files.

    Raises:
        CommandError: the folder is not empty, or the service refuses.
    """
    folder = options.folder
    try:
        if folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} is not empty; name a new folder")
        name, written = asyncio.run(_read(options))
        count = _write(folder, name, written)
    except OSError as problem:
        raise CommandError(f"{problem.filename or folder}: {problem.strerror}") from problem
    lines = [*written.notes, f"Wrote {count} files to {folder}."]
    if written.secrets:
        lines.append(
            f"Set the secrets in {folder / _EXAMPLE} ({len(written.secrets)}) before `picket apply"
            f" {folder}`, or use --keep-secrets."
        )
    for line in lines:
        terminal.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    return ExitCode.OK


async def _read(options: ExportOptions) -> tuple[str, Written]:
    async with use_api(options.environ, options.data_dir) as api:
        name = str((await api.ask("GET", "/v1/accounts/me"))["name"])
        defaults = ApiDefaults(await api.ask("GET", "/openapi.json"))
        return name, write_documents(await _account(api), defaults)


async def _account(api: PublicApi) -> Account:
    return Account(
        checks=[await _whole(api, one) for one in await api.every("/v1/checks")],
        groups=await api.every("/v1/check-groups"),
        channels=await api.every("/v1/alert-channels"),
        locations=await api.locations(),
        windows=await api.every("/v1/maintenance-windows"),
        pages=await api.status_pages(),
        services=await api.every_by_cursor("/v1/status-pages/services"),
        projects={str(one["name"]): await _owned(api, one) for one in await api.every(_PROJECTS)},
    )


async def _owned(api: PublicApi, project: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The types and ids of what a project owns."""
    whole = await api.ask("GET", f"{_PROJECTS}/{quote(project['logicalId'], safe='')}")
    return [(str(one["type"]), str(one["physicalId"])) for one in whole["resources"]]


async def _whole(api: PublicApi, one: Mapping[str, Any]) -> Mapping[str, Any]:
    """A check, whole: a secret that cannot be read then says so, instead of a mask."""
    found: Mapping[str, Any] = await api.ask("GET", f"/v1/checks/{one['id']}")
    return found


def _write(folder: Path, name: str, written: Written) -> int:
    files = dict(written.files)
    for path, document in written.documents.items():
        files[path] = to_yaml(document)
    files[PROJECT_FILE] = to_yaml({"project": {"id": slug_of(name), "name": name}})
    if written.secrets:
        files[_EXAMPLE] = "".join(f"{one}=\n" for one in written.secrets)
    for path in files:
        if not is_inside(path):
            raise CommandError(
                f"the service sent a file named {path!r}; nothing was written", ExitCode.OWN_FAULT
            )
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")
    return len(files)


class _Dumper(yaml.SafeDumper):
    """Quotes each text that YAML 1.1 or our own reader would take for something else."""


for _first, _resolvers in StrictLoader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        _Dumper.add_implicit_resolver(_tag, _pattern, [_first])


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    if _ODD_BREAKS.search(text):
        style = '"'  # in all other styles the library folds them into blanks
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(document: Mapping[str, Any]) -> str:
    """The document as `picket apply` reads it."""
    text: str = yaml.dump(
        dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH
    )
    return text
