"""One check from a JSON or YAML file, in the contract's form or the public API's."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import msgspec

from contract.checks import (
    SOURCES,
    SPEC_TYPES,
    CheckSpec,
    CheckType,
)
from contract.job import ClientCertificate, Variable
from picket.check_sense import spec_problem
from picket.document import LIMIT_BYTES, DocumentError, read_document
from picket.errors import CommandError
from picket.field_errors import explain, shown, unknown_field
from picket.public_form import FormError, SpecForm, as_text, to_contract
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


EntryT = TypeVar("EntryT", Variable, ClientCertificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFile:
    """What a file asks for: one run of one check."""

    name: str
    spec: CheckSpec
    variables: tuple[Variable, ...] = ()
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """Proxy for the check's HTTP traffic. None: direct."""


def load(source: str) -> CheckFile:
    """Read the file, or standard input when the source is `-`.

    Raises:
        CommandError: with file, path of the wrong field, its value and the mend.
    """
    name = "standard input" if source == "-" else source
    return parse(_text(source, name), name)


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


def parse(text: str, name: str) -> CheckFile:
    """The check that the text describes; `name` is what sentences call the file.

    Raises:
        CommandError: with file, path of the wrong field, its value and the mend.
    """
    try:
        document = read_document(text)
    except DocumentError as problem:
        raise CommandError(f"{name} {problem}") from problem
    if isinstance(document, list):
        raise CommandError(f"{name} holds a list of {len(document)}; one check stands in one file")
    if not isinstance(document, dict):
        raise CommandError(f"{name} holds {shown(document)}; a check is an object with a type")
    return _Reader(name, document).read()


class _Reader:
    """Reads one document; every problem it meets names the file and the field."""

    def __init__(self, file_name: str, document: Mapping[str, object]) -> None:
        self._file_name = file_name
        self._document = document

    def read(self) -> CheckFile:
        """The whole check."""
        kind = self._kind()
        return CheckFile(
            name=self._name(),
            spec=self._spec(kind),
            variables=self._variables(),
            client_certificates=self._listed(
                "clientCertificates", ClientCertificate, self._document.get("clientCertificates")
            ),
            proxy_url=self._proxy_url(),
        )

    def _refuse(self, path: str, problem: str) -> NoReturn:
        raise CommandError(f"{self._file_name}: {path} {problem}")

    def _kind(self) -> CheckType:
        field = "type" if "type" in self._document else "checkType"
        types = ", ".join(sorted(RUNNABLE))
        value = self._document.get(field)
        if value is None:
            self._refuse("$.type", f"is missing; use one of {types}")
        if not isinstance(value, str) or value.upper() not in list(CheckType):
            self._refuse(f"$.{field}", f"is {shown(value)}; use one of {types}")
        return CheckType(value.upper())

    def _name(self) -> str:
        name = self._document.get("name")
        if name is not None and not isinstance(name, str):
            self._refuse("$.name", f"is {shown(name)}; use text")
        return name or "Unnamed"

    def _spec(self, kind: CheckType) -> CheckSpec:
        fields = {k: v for k, v in self._document.items() if k not in _BESIDE_SPEC}
        try:
            form = to_contract(fields, kind)
        except FormError as problem:
            self._refuse(problem.path, str(problem))
        return self._fitting(form, kind)

    def _fitting(self, form: SpecForm, kind: CheckType) -> CheckSpec:
        spec_type = SPEC_TYPES[kind]
        if unknown := unknown_field(form.fields, spec_type):
            path, problem = unknown
            self._refuse(form.path_in_file(path), problem)
        self._hold_sources(form, kind)
        try:
            spec = msgspec.convert(form.fields, spec_type)
        except msgspec.ValidationError as trouble:
            path, problem = explain(str(trouble), form.fields, spec_type)
            self._refuse(form.path_in_file(path), problem)
        if senseless := spec_problem(spec):
            path, problem = senseless
            self._refuse(form.path_in_file(path), problem)
        return spec

    def _hold_sources(self, form: SpecForm, kind: CheckType) -> None:
        """Each type takes some sources only; the spec's own type would let all of them pass."""
        assertions = form.fields.get("assertions")
        for order, assertion in enumerate(assertions if isinstance(assertions, list) else []):
            source = assertion.get("source") if isinstance(assertion, dict) else None
            if source is not None and kind in SOURCES and source not in list(SOURCES[kind]):
                path = form.path_in_file(f"$.assertions[{order}].source")
                takes = ", ".join(sorted(SOURCES[kind]))
                self._refuse(path, f"is {shown(source)}; a check of type {kind} takes {takes}")

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
            self._refuse(f"$.{field}", f"is {shown(given, secret=True)}; use a list")
        return tuple(
            self._entry(f"$.{field}[{i}]", entry, each) for i, each in enumerate(given or [])
        )

    def _entry(self, path: str, entry: type[EntryT], given: object) -> EntryT:
        try:
            return msgspec.convert(given, entry)
        except msgspec.ValidationError as trouble:
            inner, problem = explain(str(trouble), given, entry)
            self._refuse(path + inner.removeprefix("$"), problem)

    def _proxy_url(self) -> str | None:
        proxy_url = self._document.get("proxyUrl")
        if proxy_url is not None and not isinstance(proxy_url, str):
            self._refuse("$.proxyUrl", f"is {shown(proxy_url, secret=True)}; use an address")
        return proxy_url


def _with_text_value(entry: object) -> object:
    if isinstance(entry, dict) and isinstance(entry.get("value"), (bool, int, float)):
        return {**entry, "value": as_text(entry["value"])}
    return entry
