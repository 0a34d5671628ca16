"""Reads a check from a YAML or JSON file.

Its top-level fields differ from the contract's: a file names scripts by path, and some fields of
the contract are set by a service only.
"""

import json
import re
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import yaml

from contract.assertion_rules import Wrong
from contract.checks import SPEC_TYPES, CheckSpec, CheckType
from contract.job import ClientCertificate, Variable
from picket.check_file.api_format import CONTROL_PLANE_FIELDS, SpecForm, to_contract, to_text
from picket.check_file.references import read_references
from picket.check_file.validate import (
    AllowedFields,
    find_spec_problems,
    find_unknown_fields,
    find_wrong_fields,
    render,
)
from picket.errors import CommandError
from runners.registry import RUNNABLE

_BESIDE_SPEC: Final = (
    "kind",
    "type",
    "checkType",
    "name",
    "variables",
    "environmentVariables",
    "clientCertificates",
    "proxyUrl",
)
"""What a file says beside the spec itself."""
_CHECK: Final = "check"
"""The kind of a document that says none."""
_HERE: Final = Path()
_MOST_LINES: Final = 20
"""How many wrong fields are reported at most."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")


EntryT = TypeVar("EntryT", Variable, ClientCertificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFile:
    """What a file asks for: one run of one check."""

    name: str
    spec: CheckSpec
    variables: tuple[Variable, ...] = ()
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """Proxy for what URL and API checks send. None: direct."""
    suite: Path | None = None
    """The folder of a suite, which is not packed yet. None: the check is of another type."""


def load(source: str) -> CheckFile:
    """Read the file, or standard input when the source is `-`.

    Raises:
        CommandError: one line per wrong field, with file, path, value and remedy.
    """
    name = "standard input" if source == "-" else source
    folder = Path() if source == "-" else Path(source).parent
    return parse(_text(source, name), name, folder=folder)


def _text(source: str, name: str) -> str:
    try:
        body = _bytes(source)
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise CommandError(f"{name} is not UTF-8 text (byte {problem.start})") from problem
    except OSError as problem:
        raise CommandError(f"{name} cannot be read: {problem.strerror}") from problem


def _bytes(source: str) -> bytes:
    if source == "-":
        body = sys.stdin.buffer.read(LIMIT_BYTES + 1)
    else:
        with Path(source).open("rb") as file:
            body = file.read(LIMIT_BYTES + 1)
    if len(body) > LIMIT_BYTES:
        raise CommandError(
            f"{source} is larger than {LIMIT_BYTES} bytes, the limit for a check file"
        )
    return body


def parse(text: str, name: str, *, folder: Path = _HERE) -> CheckFile:
    """The check that the text describes; `name` is what sentences call the file.

    Files that it names are looked for in the folder.

    Raises:
        CommandError: one line per wrong field, with file, path, value and remedy.
    """
    try:
        document = read_document(text)
    except DocumentError as problem:
        raise CommandError(f"{name} {problem}") from problem
    if isinstance(document, list):
        raise CommandError(
            f"{name} has a list of {len(document)}; put each check into its own file"
        )
    if not isinstance(document, dict):
        raise CommandError(f"{name} has {render(document)}; a check is an object with a type")
    return parse_document(document, name, folder=folder)


def parse_document(document: Mapping[str, object], name: str, *, folder: Path = _HERE) -> CheckFile:
    """The check that the fields of a file describe, as in `parse`.

    Raises:
        CommandError: one line per wrong field, with file, path, value and remedy.
    """
    kind = document.get("kind", _CHECK)
    if kind != _CHECK:
        raise CommandError(
            f"{name}: $.kind is {render(kind)}, which does not run; give a file with a check"
        )
    return _Reader(name, document, folder).read()


class _Reader:
    """Reads one document and collects what is wrong with it, by the field."""

    def __init__(self, file_name: str, document: Mapping[str, object], folder: Path) -> None:
        self._file_name = file_name
        self._document = document
        self._folder = folder
        self._suite: Path | None = None
        """None: the check names no folder of a suite."""
        self._wrong: dict[str, str] = {}

    def read(self) -> CheckFile:
        """The whole check.

        Raises:
            CommandError: with a line per wrong field.
        """
        name, kind = self._name(), self._kind()
        spec = None if kind is None else self._spec(kind)
        variables = self._variables()
        certificates = self._listed(
            "clientCertificates", ClientCertificate, self._document.get("clientCertificates")
        )
        proxy_url = self._proxy_url()
        if spec is None or self._wrong:
            raise CommandError("\n".join(self._lines()))
        return CheckFile(
            name=name,
            spec=spec,
            variables=variables,
            client_certificates=certificates,
            proxy_url=proxy_url,
            suite=self._suite,
        )

    def _lines(self) -> Iterator[str]:
        for path, problem in list(self._wrong.items())[:_MOST_LINES]:
            yield _CONTROL.sub(" ", f"{self._file_name}: {path} {problem}")
        if (more := len(self._wrong) - _MOST_LINES) > 0:
            yield f"{self._file_name}: {more} more fields are wrong"

    def _note(self, *wrong: Wrong) -> None:
        """The first word on a field counts: it is the one that knows most of it."""
        for path, problem in wrong:
            self._wrong.setdefault(path, problem)

    def _kind(self) -> CheckType | None:
        """None: it is wrong, so that nobody knows what the spec should be."""
        field = "type" if "type" in self._document else "checkType"
        types = ", ".join(sorted(RUNNABLE))
        value = self._document.get(field)
        if isinstance(value, str) and value.upper() in list(CheckType):
            return CheckType(value.upper())
        if value is None:
            self._note(("$.type", f"is missing; use one of {types}"))
        else:
            self._note((f"$.{field}", f"is {render(value)}; use one of {types}"))
        return None

    def _name(self) -> str:
        name = self._document.get("name")
        if name is not None and not isinstance(name, str):
            self._note(("$.name", f"is {render(name)}; use text"))
            return ""
        return name or "Unnamed"

    def _spec(self, kind: CheckType) -> CheckSpec | None:
        """None: it is wrong."""
        fields = {k: v for k, v in self._document.items() if k not in _BESIDE_SPEC}
        named = read_references(fields, kind, self._folder)
        self._suite = named.suite
        self._note(*named.wrong)
        form = to_contract(named.fields, kind)
        form.moved.update(named.moved)
        unknown = find_unknown_fields(form.fields, SPEC_TYPES[kind], allowed_fields(kind))
        unread = [
            *_find_wrong_sources(form.fields.get("assertions"), kind),
            *find_wrong_fields(form.fields, SPEC_TYPES[kind]),
        ]
        self._note(*form.wrong, *_use_file_paths(form, unknown), *_use_file_paths(form, unread))
        if unread:
            return None  # whether a check makes sense shows only once all of it can be read
        spec: CheckSpec = msgspec.convert(form.fields, SPEC_TYPES[kind])
        self._note(*_use_file_paths(form, find_spec_problems(spec)))
        return spec

    def _variables(self) -> tuple[Variable, ...]:
        field = "variables" if "variables" in self._document else "environmentVariables"
        given = self._document.get(field)
        if isinstance(given, dict):
            given = [{"key": key, "value": value} for key, value in given.items()]
        if isinstance(given, list):
            given = [_stringify_value(each) for each in given]
        return self._listed(field, Variable, given)

    def _listed(self, field: str, entry: type[EntryT], given: object) -> tuple[EntryT, ...]:
        if given is not None and not isinstance(given, list):
            self._note((f"$.{field}", f"is {render(given, secret=True)}; use a list"))
        entries = given if isinstance(given, list) else []
        wrong = [
            (f"$.{field}[{position}]{path.removeprefix('$')}", problem)
            for position, each in enumerate(entries)
            for path, problem in _check_entry(each, entry)
        ]
        self._note(*wrong)
        return () if wrong else tuple(msgspec.convert(each, entry) for each in entries)

    def _proxy_url(self) -> str | None:
        proxy_url = self._document.get("proxyUrl")
        if proxy_url is not None and not isinstance(proxy_url, str):
            self._note(("$.proxyUrl", f"is {render(proxy_url, secret=True)}; use an address"))
            return None
        return proxy_url


def _check_entry(value: object, kind: type[msgspec.Struct]) -> Iterator[Wrong]:
    """In a variable or a certificate, all of which is secret: people write `- TOKEN=value`."""
    yield from find_unknown_fields(value, kind)
    yield from find_wrong_fields(value, kind, is_secret=True)


def _use_file_paths(form: SpecForm, found: Iterable[Wrong]) -> Iterator[Wrong]:
    """Replace the paths of the contract by those in the file."""
    return ((form.path_in_file(path), problem) for path, problem in found)


def _find_wrong_sources(assertions: object, kind: CheckType) -> Iterator[Wrong]:
    """Each type takes some sources only; the spec's own type would let all of them pass."""
    sources = SPEC_TYPES[kind].sources
    for order, assertion in enumerate(assertions if isinstance(assertions, list) else []):
        source = assertion.get("source") if isinstance(assertion, dict) else None
        if source is not None and sources and source not in list(sources):
            takes = ", ".join(sorted(sources))
            sentence = f"is {render(source)}; a check of type {kind} takes {takes}"
            yield f"$.assertions[{order}].source", sentence


def _stringify_value(entry: object) -> object:
    if isinstance(entry, dict) and isinstance(entry.get("value"), (bool, int, float)):
        return {**entry, "value": to_text(entry["value"])}
    return entry


LIMIT_BYTES: Final = 1024 * 1024
LIMIT_DEPTH: Final = 40
LIMIT_VALUES: Final = 50_000
"""A few aliases of YAML can stand for billions of values; a check needs a few hundred."""


_JSON_START: Final = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]])')
"""What JSON begins with; YAML that begins like this means the same."""


class DocumentError(ValueError):
    """The text is no document; the sentence names line and column where they are known."""


def read_document(text: str) -> object:
    """The plain value that the text holds: JSON when it looks like JSON, else YAML.

    Raises:
        DocumentError: the text is neither, is empty, says a key twice, or is far too large.
    """
    if not text.strip():
        raise DocumentError("is empty")
    document = _read_json(text) if _JSON_START.match(text) else _read_yaml(text)
    _check_limits(document)
    return document


def _read_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise DocumentError(f"is not valid JSON: {where}: {problem.msg}") from problem
    except RecursionError as problem:
        raise DocumentError(f"is nested deeper than {LIMIT_DEPTH} levels") from problem
    except ValueError as problem:
        if isinstance(problem, DocumentError):
            raise
        raise DocumentError(f"is not valid JSON: {problem}") from problem


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(f"has {key} twice in one object; keep one of them")
        found[key] = value
    return found


def _no_constant(name: str) -> object:
    raise DocumentError(f"has {name}, which is not a JSON number")


class StrictLoader(yaml.SafeLoader):
    """Plain values only, and no key twice.

    Its scalars are those of YAML 1.2: `no`, `12:30` and `2026-01-01` stay the text they are.
    """

    def construct_mapping(  # noqa: D102 - it is the library's
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - the library's signature
    ) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                line = key_node.start_mark.line + 1
                raise DocumentError(f"has {key} twice: again in line {line}; keep one of them")
            seen.add(key)
        return super().construct_mapping(node, deep)


StrictLoader.yaml_implicit_resolvers = {}
_SCALARS: Final = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
    ("merge", r"^<<$", ["<"]),
)
for _tag, _pattern, _first in _SCALARS:
    StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def read_documents(text: str) -> list[tuple[int, object]]:
    """The plain values of a text with several YAML documents, each with its first line.

    Empty documents are left out.

    Raises:
        DocumentError: as for `read_document`.
    """
    if not text.strip():
        raise DocumentError("is empty")
    is_json = _JSON_START.match(text) is not None
    documents = [(1, _read_json(text))] if is_json else _read_all_yaml(text)
    _check_limits([value for _, value in documents])
    return [(line, value) for line, value in documents if value is not None]


def _read_yaml(text: str) -> object:
    documents = _read_all_yaml(text)
    if len(documents) != 1:
        raise DocumentError(f"has {len(documents)} documents; put each check into its own file")
    return documents[0][1]


def _read_all_yaml(text: str) -> list[tuple[int, object]]:
    try:
        return list(_construct_all(text))
    except yaml.YAMLError as problem:
        raise DocumentError(f"is not valid YAML: {_yaml_sentence(problem)}") from problem
    except (RecursionError, TypeError, ValueError) as problem:
        if isinstance(problem, DocumentError):
            raise
        raise DocumentError(f"is not valid YAML: {problem}") from problem


def _construct_all(text: str) -> Iterator[tuple[int, object]]:
    loader = StrictLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _yaml_sentence(problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    text = str(getattr(problem, "problem", None) or getattr(problem, "reason", problem))
    if mark is None:
        return text
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}"


def _check_limits(document: object) -> None:
    values = 0
    waiting: list[tuple[object, int]] = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        values += 1
        if values > LIMIT_VALUES:
            raise DocumentError(f"has more than {LIMIT_VALUES} values")
        if depth > LIMIT_DEPTH:
            raise DocumentError(f"is nested deeper than {LIMIT_DEPTH} levels")
        waiting.extend((child, depth + 1) for child in _children(value))


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


_ALWAYS: Final = frozenset({"type", "name", "variables"})
_OF_HTTP: Final = frozenset({"clientCertificates", "proxyUrl"})
_OF_SCRIPTS: Final = frozenset({"clientCertificates"})
_OF_ONE_SCRIPT: Final = _OF_SCRIPTS | {"scriptFile", "dependencyFiles"}
_FURTHER: Final[dict[CheckType, frozenset[str]]] = {
    CheckType.URL: _OF_HTTP,
    CheckType.API: _OF_HTTP | {"setupScriptFile", "teardownScriptFile"},
    CheckType.BROWSER: _OF_ONE_SCRIPT,
    CheckType.MULTI_STEP: _OF_ONE_SCRIPT,
    CheckType.PLAYWRIGHT: _OF_SCRIPTS | {"suiteFolder"},
    CheckType.HEARTBEAT: frozenset({"heartbeat"}),
}
"""What files say beside the fields of a spec; of the other types nothing."""
_BETWEEN_US: Final = frozenset(
    {
        "groupSetupScript",
        "groupTeardownScript",
        "setupScriptPath",
        "teardownScriptPath",
        "snapshots",
        "updateSnapshots",
        "snippets",
        "bundleSha256",
        "refreshCache",
    }
)
"""What a service, or `picket run` itself, puts into a spec."""


def allowed_fields(kind: CheckType) -> AllowedFields:
    """The words of a type."""
    of_spec = {field.encode_name for field in msgspec.structs.fields(SPEC_TYPES[kind])}
    further = _ALWAYS | _FURTHER.get(kind, frozenset())
    return AllowedFields(frozenset((of_spec - _BETWEEN_US) | further), CONTROL_PLANE_FIELDS)
