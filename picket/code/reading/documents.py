"""Finds the documents in the files of a project: checks, and what stands beside them."""

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from contract.checks import CheckType
from contract.suggestions import suggest_name
from picket.check_file.load import LIMIT_BYTES, DocumentError, read_documents
from picket.check_file.validate import render
from picket.errors import CommandError

PROJECT_FILE: Final = "picket.yaml"
_SUFFIXES: Final = frozenset({".yaml", ".yml"})
_NO_CHECKS: Final = ("pnpm-lock.*", "pnpm-workspace.*", "compose.*", "compose-*", "docker-compose*")
"""YAML files of other programs, which stand beside checks."""
_NO_FOLDERS: Final = frozenset({"node_modules", "playwright-report", "test-results"})
_SUITE: Final = "playwright.config."
_MOST_LINES: Final = 20
_NAME_CHARS: Final = re.compile(r"[^A-Za-z0-9]+")
_MOST_ID_CHARS: Final = 200
_ID: Final = re.compile(r"[A-Za-z0-9_\-/#.]+")


class Kind(StrEnum):
    """What a document describes; one without the field `kind` is a check."""

    CHECK = "check"
    GROUP = "group"
    ALERT_CHANNEL = "alert-channel"
    PRIVATE_LOCATION = "private-location"
    MAINTENANCE_WINDOW = "maintenance-window"
    STATUS_PAGE = "status-page"
    STATUS_PAGE_SERVICE = "status-page-service"

    @property
    def resource_type(self) -> str:
        """What a deployment calls it."""
        return "check-group" if self is Kind.GROUP else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One check, group, channel and so on, as a file has it."""

    kind: Kind
    logical_id: str
    """What the service knows it by, within its kind."""
    name: str
    fields: Mapping[str, object]
    """All but `kind`, `id` and `physicalId`."""
    source: str
    """The file, and the line if it has several documents: what sentences call the document."""
    folder: Path
    """Files that it names are looked for here."""
    physical_id: str | None = None
    """The id of what exists at a service and is taken over. None: nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The documents that are deployed together."""

    logical_id: str
    name: str
    documents: tuple[Document, ...]
    is_whole: bool
    """Whether these are all documents of the project; what is not among them may be deleted."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """What `picket.yaml` says."""

    logical_id: str
    name: str
    ignored: tuple[str, ...] = ()


def read_project(paths: Sequence[Path]) -> Project:
    """Read the folder, or the files, of a project.

    Raises:
        CommandError: a file is wrong; one line for each.
    """
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise CommandError("\n".join(f"{path} does not exist" for path in missing))
    root = _find_root(paths[0])
    settings = _read_settings(root)
    wrong: list[str] = []
    documents: list[Document] = []
    for path in dict.fromkeys(_list_files(paths, root, settings.ignored)):
        try:
            documents.extend(_read_file(path, root))
        except CommandError as problem:
            wrong.append(problem.message)
    wrong.extend(_find_doubles(documents))
    if not wrong and not documents:
        wrong.append(f"{paths[0]} has no check file (*.yaml, *.yml)")
    if wrong:
        raise CommandError("\n".join(wrong[:_MOST_LINES]))
    return Project(
        logical_id=settings.logical_id,
        name=settings.name,
        documents=tuple(documents),
        is_whole=[path.resolve() for path in paths] == [root],
    )


def slug_of(text: str) -> str:
    """Lower-case letters and digits of a name, joined by hyphens; `unnamed` if it has none."""
    return _NAME_CHARS.sub("-", text).strip("-").lower()[:100] or "unnamed"


def _find_root(path: Path) -> Path:
    """The nearest folder with a `picket.yaml`, so that ids do not depend on what is given."""
    start = path.resolve()
    start = start if start.is_dir() else start.parent
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    return start


def _read_settings(root: Path) -> _Settings:
    file = root / PROJECT_FILE
    default = root.name or "checks"
    if not file.is_file():
        return _Settings(slug_of(default), default)
    found = _documents_of(file, PROJECT_FILE)
    content = found[0][1] if len(found) == 1 else None
    if not isinstance(content, dict):
        raise CommandError(f"{PROJECT_FILE} must be one object with the field project")
    _refuse_unknown(content, ("project", "ignore"), "$")
    project = content.get("project") or {}
    if not isinstance(project, dict):
        raise CommandError(f"{PROJECT_FILE}: $.project must be an object with id and name")
    _refuse_unknown(project, ("id", "name"), "$.project")
    name = project.get("name", default)
    logical_id = project.get("id", slug_of(str(name)))
    ignored = content.get("ignore") or []
    if not isinstance(name, str) or not name:
        raise CommandError(f"{PROJECT_FILE}: $.project.name is {render(name)}; use text")
    if not isinstance(logical_id, str) or not _ID.fullmatch(logical_id):
        fix = "use letters, digits and -_/#."
        raise CommandError(f"{PROJECT_FILE}: $.project.id is {render(logical_id)}; {fix}")
    if not isinstance(ignored, list) or not all(isinstance(one, str) for one in ignored):
        raise CommandError(f"{PROJECT_FILE}: $.ignore must be a list of patterns such as ci/**")
    return _Settings(logical_id, name, tuple(ignored))


def _refuse_unknown(fields: Mapping[str, object], known: Sequence[str], path: str) -> None:
    for field in fields:
        if field not in known:
            raise CommandError(
                f"{PROJECT_FILE}: {path}.{field} is unknown; use {' or '.join(known)}"
            )


def _list_files(paths: Iterable[Path], root: Path, ignored: Sequence[str]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from _walk(path.resolve(), root, ignored)
        elif path.name != PROJECT_FILE:
            yield path.resolve()


def _walk(folder: Path, root: Path, ignored: Sequence[str]) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        is_suite = any(name.startswith(_SUITE) for name in files)
        folders[:] = sorted(
            name
            for name in folders
            if not is_suite
            and not name.startswith(".")
            and name not in _NO_FOLDERS
            and not _is_ignored(here / name, root, ignored)
        )
        for name in sorted(files):
            path = here / name
            is_ours = path.suffix in _SUFFIXES and name != PROJECT_FILE and name[0] != "."
            is_other = any(fnmatch.fnmatch(name, pattern) for pattern in _NO_CHECKS)
            if is_ours and not is_other and not _is_ignored(path, root, ignored):
                yield path


def _is_ignored(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return any(
        fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(f"{name}/", pattern.removesuffix("**"))
        for pattern in patterns
    )


def _documents_of(path: Path, name: str) -> list[tuple[int, object]]:
    try:
        with path.open("rb") as file:
            body = file.read(LIMIT_BYTES + 1)
        if len(body) > LIMIT_BYTES:
            raise CommandError(f"{name} is larger than {LIMIT_BYTES} bytes, the limit for a file")
        return read_documents(body.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise CommandError(f"{name} is not UTF-8 text (byte {problem.start})") from problem
    except OSError as problem:
        raise CommandError(f"{name} cannot be read: {problem.strerror}") from problem
    except DocumentError as problem:
        raise CommandError(f"{name} {problem}") from problem


def _read_file(path: Path, root: Path) -> Iterator[Document]:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    found = _documents_of(path, name)
    for line, value in found:
        source = name if len(found) == 1 else f"{name}:{line}"
        if not isinstance(value, dict):
            raise CommandError(f"{source} has {render(value)}; a document is an object")
        yield _to_document(value, source, path, is_alone=len(found) == 1)


def _to_document(
    fields: Mapping[str, object], source: str, path: Path, *, is_alone: bool
) -> Document:
    kind = _kind(fields, source)
    name = _name(fields, source, kind)
    stem = source.rpartition(":")[0] if not is_alone else source
    stem = stem.removesuffix(path.suffix)
    default = _ID_LEFT_OUT.sub("-", stem) if is_alone else f"{stem}#{slug_of(name)}"
    logical_id = fields.get("id", default[:_MOST_ID_CHARS])
    if not isinstance(logical_id, str) or not _ID.fullmatch(logical_id):
        fix = "use letters, digits and -_/#."
        raise CommandError(f"{source}: $.id is {render(logical_id)}; {fix}")
    physical_id = fields.get("physicalId")
    is_id = isinstance(physical_id, str | int) and not isinstance(physical_id, bool)
    if physical_id is not None and not is_id:
        fix = "use the id that the service has for it"
        raise CommandError(f"{source}: $.physicalId is {render(physical_id)}; {fix}")
    own = {key: fields[key] for key in fields if key not in ("kind", "id", "physicalId")}
    return Document(
        kind=kind,
        logical_id=logical_id,
        name=name,
        fields=own,
        source=source,
        folder=path.parent,
        physical_id=None if physical_id is None else str(physical_id),
    )


_ID_LEFT_OUT: Final = re.compile(r"[^A-Za-z0-9_\-/.]+")


def _kind(fields: Mapping[str, object], source: str) -> Kind:
    given = fields.get("kind")
    if given is None:
        if "type" in fields or "checkType" in fields:
            return Kind.CHECK
        types, kinds = ", ".join(sorted(CheckType)), ", ".join(list(Kind)[1:])
        raise CommandError(
            f"{source} has neither type nor kind; a check has a type ({types}), anything else a"
            f" kind ({kinds}); name files of other programs in `ignore` of {PROJECT_FILE}"
        )
    if isinstance(given, str) and given in list(Kind):
        return Kind(given)
    near = suggest_name(given, Kind) if isinstance(given, str) else None
    fix = f"did you mean {near}?" if near else f"use one of {', '.join(Kind)}"
    raise CommandError(f"{source}: $.kind is {render(given)}; {fix}")


def _name(fields: Mapping[str, object], source: str, kind: Kind) -> str:
    name = fields.get("name")
    if name is None and kind is Kind.ALERT_CHANNEL:
        return str(fields.get("id") or Path(source.partition(":")[0]).stem)
    if not isinstance(name, str) or not name:
        problem = "is missing" if name is None else f"is {render(name)}; use text"
        raise CommandError(f"{source}: $.name {problem}")
    return name


def _find_doubles(documents: Sequence[Document]) -> Iterator[str]:
    counts = Counter((one.kind, one.logical_id) for one in documents)
    for one in documents:
        if counts[one.kind, one.logical_id] > 1:
            yield f"{one.source}: $.id is {one.logical_id}, which another {one.kind} has, too"
