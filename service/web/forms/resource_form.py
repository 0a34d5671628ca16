"""How the forms of a resource are declared: its operations, its model, and what comes first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from pydantic import BaseModel

from service.web.forms.controls import Control
from service.web.forms.field_schema import Field, Kind, Options, Shape, read_fields
from service.web.visit import Visit

Document = Mapping[str, Any]
"""A resource as the API answers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Fields that stand together under a heading."""

    title: str
    fields: tuple[str, ...]
    """Paths; that of a group stands for all fields in it that no section names."""
    hint: str = ""
    """A sentence below the heading."""
    is_folded: bool = False
    takes_rest: bool = False
    """Whether what no section names stands in it, after its own."""


MORE: Final = Section(title="More", fields=(), is_folded=True, takes_rest=True)
"""Holds what no other section names, where none takes the rest: no field is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSection:
    """A section with what a template draws of it."""

    title: str
    hint: str
    is_folded: bool
    controls: tuple[Control, ...]

    @property
    def is_open(self) -> bool:
        """Whether a folded section is open: something in it is wrong."""
        return any(one.has_problem for one in self.controls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A page of a resource beside its form."""

    path: str
    """Its address, as in `/groups/{id}/link`; a resource that is not there yet is called `new`."""
    title: str
    is_of_new: bool = False
    """Whether a resource has it before it is there."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """The fields of one kind of a resource, and the operations that take them."""

    kind: str = ""
    """What the address of a new one says. Empty: there is one kind."""
    title: str
    """What it is, as in `URL monitor`."""
    sentence: str = ""
    """When one chooses it."""
    model: type[BaseModel]
    """The body of both operations."""
    create: str = ""
    """The operation, as in `POST /v1/checks/url`. Empty: there is always one."""
    replace: str = ""
    """The operation, as in `PUT /v1/checks/url/{id}`. Empty: a stored one cannot be changed."""
    sections: tuple[Section, ...]
    fixed: Document = field(default_factory=dict)
    """Values that the kind decides, and no form shows."""
    left_out: frozenset[str] = frozenset()
    """Fields that the kind refuses."""
    idle: frozenset[str] = frozenset()
    """Fields that have no effect for the kind: a stored one keeps what it has."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it calls fields that are called otherwise in other forms, by name."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What it says of fields instead of what the API's documentation says, by name."""
    more_shapes: Mapping[str, Shape] = field(default_factory=dict)
    """A further shape of a field, after the first one, by name; `send` undoes it."""
    send: Callable[[Document], Document] = lambda body: body
    """The body as the API takes it; what `Resource.show` does to a stored one, undone."""
    never_null: frozenset[str] = frozenset()
    """Fields for which null is no choice: the form always says one of the others."""
    has_local_times: bool = False
    """Whether times are on the clock of a field `timeZone`; otherwise they are in UTC."""
    neighbors: tuple[Neighbor, ...] = ()
    try_path: str = ""
    """Where it is sent to be tried without saving it. Empty: it cannot be tried."""
    is_offered: bool = True
    """Whether new ones may be of this kind."""

    @cached_property
    def root(self) -> Field:
        """All fields of the body."""
        whole = read_fields(self.model)
        hidden = self.left_out | self.idle | self.fixed.keys()
        fields = tuple(one for one in whole.fields if one.name not in hidden)
        fields = tuple(self._adapt(one) for one in fields)
        fields = tuple(
            replace(one, is_nullable=False) if one.name in self.never_null else one
            for one in fields
        )
        if self.has_local_times:
            fields = tuple(replace(one, is_local=True) for one in fields)
        return Field(name="", kind=Kind.GROUP, fields=fields, is_required=True)

    def _adapt(self, one: Field) -> Field:
        more = self.more_shapes.get(one.name)
        shapes = (*one.shapes[:1], more, *one.shapes[1:]) if more else one.shapes
        return replace(
            one,
            shapes=shapes,
            label=self.labels.get(one.name, ""),
            help=self.notes.get(one.name, one.help),
        )

    def keep(self, stored: Document, root: Field) -> Document:
        """What is stored in fields that a form does not have, for it to stay."""
        shown = {one.name for one in root.fields}
        known = {info.alias or name for name, info in self.model.model_fields.items()}
        kept = known - shown - self.left_out - self.fixed.keys()
        return {name: value for name, value in stored.items() if name in kept}


async def _no_options(_visit: Visit, _form: Form) -> Options:
    return {}


async def _only_kind(_visit: Visit, _stored: Document) -> str:
    return ""


async def _complete_nothing(_visit: Visit, body: Document) -> Document:
    return body


async def _begin_empty(_visit: Visit, _form: Form) -> Document:
    return {}


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What people add, change and delete by forms."""

    path: str
    """What its addresses begin with, as in `/checks`."""
    home: str = ""
    """Where its list is. Empty: at `path`."""
    noun: str
    """What one of it is called, as in `check`."""
    place: str
    """What its list is called, as in `Checks`."""
    read: str
    """The operation, as in `GET /v1/checks/{id}`."""
    delete: str = ""
    """The operation, as in `DELETE /v1/snippets/{id}`. Empty: a page of its own does that."""
    is_alone: bool = False
    """Whether an account has exactly one, whose form stands at `path` itself."""
    forms: tuple[Form, ...]
    kind_of: Callable[[Visit, Document], Awaitable[str]] = _only_kind
    """Which form changes a stored one."""
    show: Callable[[Document], Document] = lambda document: document
    """A stored one as its form shows it."""
    key: str = "id"
    """The field that addresses name it by."""
    title_of: Callable[[Document], str] = lambda document: str(document["name"])
    options: Callable[[Visit, Form], Awaitable[Options]] = _no_options
    """What may be chosen in fields that name other resources."""
    begin: Callable[[Visit, Form], Awaitable[Document]] = _begin_empty
    """What a new one starts with."""
    complete: Callable[[Visit, Document], Awaitable[Document]] = _complete_nothing
    """The body of a new one, with what has to be said of what its form did not name."""
    after: str = ""
    """Where one lands after saving, as in `/checks/{id}`. Empty: at the list."""
    after_new: str = ""
    """Where one lands after adding. Empty: where one lands after saving."""
    code_types: tuple[str, ...] = ()
    """What deployments call it. Empty: none has it."""
    new_key_of: Callable[[Document], str] = lambda _document: ""
    """The key that an answer shows this once; the page `after` shows it, then. Empty: none."""
    loss: str = "This cannot be undone."
    """What is lost with it."""
    is_named_to_delete: bool = False
    """Whether its name has to be typed before it is deleted."""
    placeholders: Mapping[str, str] = field(default_factory=dict)
    """Examples in empty fields, by path."""

    @property
    def is_setting(self) -> bool:
        """Whether its form stands beside the navigation of the settings."""
        return self.path.startswith("/settings/")

    @property
    def list_path(self) -> str:
        """Where its list is."""
        return self.home or self.path

    @property
    def offered(self) -> tuple[Form, ...]:
        """The kinds that new ones may be of."""
        return tuple(one for one in self.forms if one.is_offered)

    def form_of(self, kind: str) -> Form | None:
        """The form of a kind. None: there is no such kind."""
        return next((one for one in self.forms if one.kind == kind), None)


def arrange(sections: Sequence[Section], controls: Sequence[Control]) -> tuple[DrawnSection, ...]:
    """Put controls into their sections; those that no section names stand in the last one."""
    left = {one.name: one for one in _flatten(controls)}
    named = {path for section in sections for path in section.fields}
    drawn = []
    last = () if any(one.takes_rest for one in sections) else (MORE,)
    for section in (*sections, *last):
        paths = (*section.fields, *(left if section.takes_rest else ()))
        found = [one for path in paths for one in _take(left, path, named)]
        if found:
            drawn.append(
                DrawnSection(
                    title=section.title,
                    hint=section.hint,
                    is_folded=section.is_folded,
                    controls=tuple(found),
                )
            )
    return tuple(drawn)


def _flatten(controls: Sequence[Control]) -> list[Control]:
    """Fields of groups stand for themselves: `request.url` beside `name`."""
    flat = []
    for one in controls:
        flat += _flatten(one.inside) if one.kind is Kind.GROUP else [one]
    return flat


def _take(left: dict[str, Control], path: str, named: set[str]) -> list[Control]:
    """Take the control of a path, or those in its group that have no section of their own."""
    if path in left:
        return [left.pop(path)]
    inside = [name for name in left if name.startswith(f"{path}.") and name not in named]
    return [left.pop(name) for name in inside]
