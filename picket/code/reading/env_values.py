"""Puts values of the environment in the place of `${NAME}`, where documents may have secrets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from picket.code.reading.documents import Document, Project
from picket.errors import CommandError

_REFERENCE: Final = re.compile(r"\$(?P<escaped>\$)?\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIALS: Final = re.compile(r"//\$\{\w+\}@")
"""A reference in an address; the service keeps this part by itself."""
_FIELDS: Final = frozenset(
    {
        "variables", "environmentVariables", "headers", "queryParameters", "basicAuth", "config",
        "proxyUrl", "url", "pingToken", "clientCertificates",
    }
)  # fmt: skip
"""Below these fields; scripts and commands have `${…}` of their own."""
MASK: Final = "*********"
"""The service keeps the value that it has."""
_SHORTEST_HIDDEN: Final = 4


@dataclass(slots=True)
class EnvValues:
    """Fills references in, and remembers what for."""

    environ: Mapping[str, str]
    remedy: str = "set it in the environment"
    """What to do about names that are not set."""
    keep_missing: bool = False
    """Whether a secret that is not set stays as the service has it."""
    used: set[str] = field(default_factory=set)
    """The values that were filled in: they are secrets."""
    missing: dict[str, str] = field(default_factory=dict)
    """Names that are not set, and the first document that names each."""

    def fill(self, project: Project) -> Project:
        """The project with values in the place of references.

        Raises:
            CommandError: some are not set.
        """
        filled = tuple(self._fill_document(one) for one in project.documents)
        if self.missing and not self.keep_missing:
            lines = [f"{file}: {name} is not set" for name, file in self.missing.items()]
            raise CommandError("\n".join([*lines, self.remedy]))
        return replace(project, documents=filled)

    def hide(self, text: str) -> str:
        """The text without the values that were filled in."""
        for value in sorted(self.used, key=len, reverse=True):
            if len(value) >= _SHORTEST_HIDDEN:
                text = text.replace(value, MASK)
        return text

    def is_part_of(self, value: object) -> bool:
        """Whether a value that was filled in stands somewhere in this one."""
        if isinstance(value, Mapping):
            return any(map(self.is_part_of, value.values()))
        if isinstance(value, list):
            return any(map(self.is_part_of, value))
        return isinstance(value, str) and self.hide(value) != value

    def _fill_document(self, document: Document) -> Document:
        fields = {
            key: self._fill(value, document.source, is_open=key in _FIELDS)
            for key, value in document.fields.items()
        }
        return replace(document, fields=fields)

    def _fill(self, value: object, source: str, *, is_open: bool) -> object:
        if isinstance(value, dict):
            filled = {
                key: self._fill(one, source, is_open=is_open or key in _FIELDS)
                for key, one in value.items()
            }
            is_unset = is_open and filled.get("secret") is True and filled.get("value") == MASK
            # An empty secret variable keeps its value; the mask stands for all others.
            return {**filled, "value": ""} if is_unset else filled
        if isinstance(value, list):
            return [self._fill(one, source, is_open=is_open) for one in value]
        return self._fill_text(value, source) if is_open and isinstance(value, str) else value

    def _fill_text(self, text: str, source: str) -> str:
        names = [one["name"] for one in _REFERENCE.finditer(text) if not one["escaped"]]
        unset = [name for name in names if name not in self.environ]
        for name in unset:
            self.missing.setdefault(name, source)
        if unset and not _CREDENTIALS.search(text):
            return MASK

        def value_of(found: re.Match[str]) -> str:
            if found["escaped"]:
                return found[0][1:]
            value = self.environ.get(found["name"])
            if value is None:
                return MASK
            self.used.add(value)
            return value

        return _REFERENCE.sub(value_of, text)


def escape(text: str) -> str:
    """The text as a file has it, so that no `${NAME}` in it is filled in."""
    return _REFERENCE.sub(lambda found: f"${found[0]}", text)
