"""One check from a JSON or YAML file, in the contract's form or the public API's."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from contract.checks import SPEC_TYPES, CheckSpec, CheckType
from contract.job import ClientCertificate, Variable
from contract.sense import Wrong
from picket.check_sense import spec_problems
from picket.document import LIMIT_BYTES, DocumentError, read_document
from picket.errors import CommandError
from picket.field_errors import shown, unknown_fields
from picket.field_words import words_of
from picket.named_files import with_files
from picket.public_form import SpecForm, as_text, to_contract
from picket.wrong_fields import wrong_fields
from runners.registry import RUNNABLE

_BESIDE_SPEC: Final = (
    "type",
    "checkType",
    "name",
    "variables",
    "environmentVariables",
    "clientCertificates",
    "proxyUrl",
)
"""What a file says beside the spec itself."""
_HERE: Final = Path()
_MOST_LINES: Final = 20
"""A list of 1000 wrong entries is told by its first ones."""
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
        CommandError: a line per wrong field, with file, path, value and the mend.
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
        raise CommandError(f"{source} is larger than {LIMIT_BYTES} bytes; a check is far smaller")
    return body


def parse(text: str, name: str, *, folder: Path = _HERE) -> CheckFile:
    """The check that the text describes; `name` is what sentences call the file.

    Files that it names are looked for in the folder.

    Raises:
        CommandError: a line per wrong field, with file, path, value and the mend.
    """
    try:
        document = read_document(text)
    except DocumentError as problem:
        raise CommandError(f"{name} {problem}") from problem
    if isinstance(document, list):
        raise CommandError(f"{name} holds a list of {len(document)}; one check stands in one file")
    if not isinstance(document, dict):
        raise CommandError(f"{name} holds {shown(document)}; a check is an object with a type")
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
            self._note((f"$.{field}", f"is {shown(value)}; use one of {types}"))
        return None

    def _name(self) -> str:
        name = self._document.get("name")
        if name is not None and not isinstance(name, str):
            self._note(("$.name", f"is {shown(name)}; use text"))
            return ""
        return name or "Unnamed"

    def _spec(self, kind: CheckType) -> CheckSpec | None:
        """None: it is wrong."""
        fields = {k: v for k, v in self._document.items() if k not in _BESIDE_SPEC}
        named = with_files(fields, kind, self._folder)
        self._suite = named.suite
        self._note(*named.wrong)
        form = to_contract(named.fields, kind)
        form.moved.update(named.moved)
        unknown = unknown_fields(form.fields, SPEC_TYPES[kind], words_of(kind))
        unread = [
            *_strange_sources(form.fields.get("assertions"), kind),
            *wrong_fields(form.fields, SPEC_TYPES[kind]),
        ]
        self._note(*form.wrong, *_in_file(form, unknown), *_in_file(form, unread))
        if unread:
            return None  # whether a check makes sense shows only once all of it can be read
        spec: CheckSpec = msgspec.convert(form.fields, SPEC_TYPES[kind])
        self._note(*_in_file(form, spec_problems(spec)))
        return spec

    def _variables(self) -> tuple[Variable, ...]:
        field = "variables" if "variables" in self._document else "environmentVariables"
        given = self._document.get(field)
        if isinstance(given, dict):
            given = [{"key": key, "value": value} for key, value in given.items()]
        if isinstance(given, list):
            given = [_with_text_value(each) for each in given]
        return self._listed(field, Variable, given)

    def _listed(self, field: str, entry: type[EntryT], given: object) -> tuple[EntryT, ...]:
        if given is not None and not isinstance(given, list):
            self._note((f"$.{field}", f"is {shown(given, secret=True)}; use a list"))
        entries = given if isinstance(given, list) else []
        wrong = [
            (f"$.{field}[{position}]{path.removeprefix('$')}", problem)
            for position, each in enumerate(entries)
            for path, problem in _wrong_in(each, entry)
        ]
        self._note(*wrong)
        return () if wrong else tuple(msgspec.convert(each, entry) for each in entries)

    def _proxy_url(self) -> str | None:
        proxy_url = self._document.get("proxyUrl")
        if proxy_url is not None and not isinstance(proxy_url, str):
            self._note(("$.proxyUrl", f"is {shown(proxy_url, secret=True)}; use an address"))
            return None
        return proxy_url


def _wrong_in(value: object, kind: type[msgspec.Struct]) -> Iterator[Wrong]:
    """In a variable or a certificate, all of which is secret: people write `- TOKEN=value`."""
    yield from unknown_fields(value, kind)
    yield from wrong_fields(value, kind, is_secret=True)


def _in_file(form: SpecForm, found: Iterable[Wrong]) -> Iterator[Wrong]:
    """The same, by the path that the reader of the file knows."""
    return ((form.path_in_file(path), problem) for path, problem in found)


def _strange_sources(assertions: object, kind: CheckType) -> Iterator[Wrong]:
    """Each type takes some sources only; the spec's own type would let all of them pass."""
    sources = SPEC_TYPES[kind].sources
    for order, assertion in enumerate(assertions if isinstance(assertions, list) else []):
        source = assertion.get("source") if isinstance(assertion, dict) else None
        if source is not None and sources and source not in list(sources):
            takes = ", ".join(sorted(sources))
            sentence = f"is {shown(source)}; a check of type {kind} takes {takes}"
            yield f"$.assertions[{order}].source", sentence


def _with_text_value(entry: object) -> object:
    if isinstance(entry, dict) and isinstance(entry.get("value"), (bool, int, float)):
        return {**entry, "value": as_text(entry["value"])}
    return entry
