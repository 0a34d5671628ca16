"""Fields of a form, read from the JSON schema of a request's body."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel

ABSENT: Final = object()
"""Where there is no value: not even null."""
_LONG_FROM_LETTERS: Final = 2_049
"""Texts that may be longer than an address have a field with several lines."""
_IN_ROWS: Final = ("key", "source", "property", "comparison")
"""What a row begins with, so that it reads as a sentence, wherever its model has it from."""
_SCALARS: Final = frozenset({"string", "integer", "number"})


class Kind(StrEnum):
    """How a field is filled in."""

    TEXT = "text"
    LONG = "long"
    """Text of several lines."""
    MOMENT = "moment"
    NUMBER = "number"
    CHECKBOX = "checkbox"
    CHOICE = "choice"
    CHOICES = "choices"
    """Several of a few values."""
    LINES = "lines"
    """A list of texts or numbers, one on each line."""
    ROWS = "rows"
    """A list of objects."""
    GROUP = "group"
    """An object."""
    SHAPES = "shapes"
    """One of several shapes: nothing, a word, or an object."""
    KEY = "key"
    """Which stored row a row is: it is sent back, and people neither see nor type it."""
    JSON = "json"
    """Whatever has no field of its own: no value is out of reach."""


@dataclass(frozen=True, slots=True)
class Option:
    """One of the values that may be chosen."""

    value: Any
    label: str
    data: Mapping[str, str] = field(default_factory=dict)
    """What the page's script knows of it, as attributes `data-…`."""

    @property
    def key(self) -> str:
        """The value as a form sends it."""
        return key_of(self.value)


Options = Mapping[str, Sequence[Option] | None]
"""By pattern of a path, as in `alertChannelSubscriptions[].alertChannelId`.

None: there is nothing to choose from, and the form does without the field.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form, perhaps with fields inside."""

    name: str
    """The last part of its path; empty for the body and for a row."""
    kind: Kind
    label: str = ""
    """What a form calls it. Empty: as everywhere."""
    help: str = ""
    """What the API's documentation says of it."""
    is_required: bool = False
    is_nullable: bool = False
    default: Any = ABSENT
    options: tuple[Option, ...] = ()
    """What may be chosen: of CHOICE and CHOICES."""
    minimum: float | None = None
    """None: no limit is known."""
    maximum: float | None = None
    """None: no limit is known."""
    is_whole: bool = False
    """Whether a number, or each one of a list, has no fraction."""
    is_local: bool = False
    """Whether a MOMENT is on the clock of another field's time zone, and not in UTC."""
    is_text: bool = False
    """Whether the lines of a list are texts."""
    fields: tuple["Field", ...] = ()
    """What a GROUP, or each row, is made of."""
    shapes: tuple["Shape", ...] = ()
    """What SHAPES may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One of the shapes that a value may have."""

    constant: Any = ABSENT
    """The value itself. ABSENT: `field` says what it is made of."""
    field: Field | None = None
    """The fields of an object. None: the shape is a constant."""

    def fits(self, value: Any) -> bool:
        """Whether a value has this shape."""
        if self.field is None:
            return bool(value == self.constant)
        return isinstance(value, dict)


def key_of(value: Any) -> str:
    """A value as a form sends it; null is empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def read_fields(model: type[BaseModel]) -> Field:
    """The body of an operation as a field with fields inside."""
    schema = model.model_json_schema(by_alias=True)
    return _Reader(schema.get("$defs", {})).read("", schema, is_required=True)


def offer(root: Field, options: Options) -> Field:
    """The fields, where those with options are chosen from them."""
    return _offer(root, options, "")


def walk(root: Field, path: str = "") -> Iterator[tuple[str, Field]]:
    """Every field with its path; rows are `[]`, and shapes have the path of their field."""
    yield path, root
    below = f"{path}[]" if root.kind is Kind.ROWS else path
    for one in root.fields:
        yield from walk(one, join(below, one.name))
    for shape in root.shapes:
        for one in shape.field.fields if shape.field else ():
            yield from walk(one, join(path, one.name))


def join(path: str, name: str) -> str:
    """The path of a field inside another one."""
    return f"{path}.{name}" if path else name


def _offer(one: Field, options: Options, path: str) -> Field:
    found = options.get(path)
    if found is not None:
        kind = Kind.CHOICES if one.kind in {Kind.LINES, Kind.CHOICES} else Kind.CHOICE
        return replace(one, kind=kind, options=tuple(found))
    below = f"{path}[]" if one.kind is Kind.ROWS else path
    inside = tuple(
        _offer(each, options, name)
        for each in one.fields
        if options.get(name := join(below, each.name), ()) is not None
    )
    shapes = tuple(
        replace(shape, field=_offer(shape.field, options, path)) if shape.field else shape
        for shape in one.shapes
    )
    return replace(one, fields=inside, shapes=shapes)


class _Reader:
    """Turns schemas into fields, and follows their references."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def read(self, name: str, schema: Mapping[str, Any], *, is_required: bool) -> Field:
        """One field."""
        whole = self._resolve(schema)
        branches = [self._resolve(one) for one in _branches(whole)]
        is_nullable = any(one.get("type") == "null" for one in branches)
        branches = [one for one in branches if one.get("type") != "null"] or [whole]
        blank = Field(
            name=name,
            kind=Kind.JSON,
            help=" ".join(str(whole.get("description", "")).split()),
            is_required=is_required,
            is_nullable=is_nullable,
            default=whole.get("default", ABSENT),
        )
        if len(branches) == 1:
            return self._single({**whole, **branches[0]}, blank)
        return self._of_several(branches, blank)

    def _single(self, schema: Mapping[str, Any], blank: Field) -> Field:  # noqa: PLR0911 - a table
        match schema.get("type"):
            case _ if "enum" in schema:
                return replace(blank, kind=Kind.CHOICE, options=_options(schema["enum"], blank))
            case "boolean" if blank.is_nullable:
                return replace(blank, kind=Kind.CHOICE, options=_YES_NO)
            case "boolean":
                return replace(blank, kind=Kind.CHECKBOX)
            case "integer" | "number":
                return _number(schema, blank)
            case "string":
                return replace(blank, kind=_kind_of_text(schema))
            case "array":
                return self._list(self._resolve(schema.get("items", {})), blank)
            case "object" if schema.get("properties"):
                return self._object(schema, blank)
        if "const" in schema:
            return replace(blank, kind=Kind.CHOICE, options=_options([schema["const"]], blank))
        return blank

    def _list(self, item: Mapping[str, Any], blank: Field) -> Field:
        if item.get("type") == "object" and item.get("properties"):
            fields = tuple(_hide_id(one) for one in self._properties(item))
            return replace(blank, kind=Kind.ROWS, fields=fields)
        if "enum" in item or "const" in item:
            values = item.get("enum") or [item["const"]]
            return replace(blank, kind=Kind.CHOICES, options=_options(values, blank))
        if item.get("type") in _SCALARS:
            kind = item["type"]
            return replace(
                blank, kind=Kind.LINES, is_text=kind == "string", is_whole=kind == "integer"
            )
        return blank

    def _object(self, schema: Mapping[str, Any], blank: Field) -> Field:
        fields = self._properties(schema)
        # A default that no schema tells is an object: null is no more than another word for it.
        is_made = blank.default is ABSENT and not blank.is_required
        if not blank.is_nullable or is_made:
            return replace(blank, kind=Kind.GROUP, fields=fields, is_nullable=False)
        of_object = Field(name="", kind=Kind.GROUP, fields=fields)
        shapes = (Shape(constant=None), Shape(field=of_object))
        return replace(blank, kind=Kind.SHAPES, shapes=shapes)

    def _of_several(self, branches: Sequence[Mapping[str, Any]], blank: Field) -> Field:
        """Objects and words become shapes; one item instead of a list is the list."""
        lists = [one for one in branches if one.get("type") == "array"]
        if len(lists) == 1:
            return self._single(lists[0], blank)
        shapes = [Shape(constant=None)] if blank.is_nullable else []
        for one in branches:
            if "const" in one:
                shapes.append(Shape(constant=one["const"]))
            elif one.get("properties"):
                of_object = Field(name="", kind=Kind.GROUP, fields=self._properties(one))
                shapes.append(Shape(field=of_object))
            else:
                return blank
        objects = sum(shape.field is not None for shape in shapes)
        return replace(blank, kind=Kind.SHAPES, shapes=tuple(shapes)) if objects == 1 else blank

    def _properties(self, schema: Mapping[str, Any]) -> tuple[Field, ...]:
        required = set(schema.get("required", ()))
        fields = [
            self.read(name, one, is_required=name in required)
            for name, one in schema["properties"].items()
            if "const" not in one or one["const"] != one.get("default")  # nothing to choose
        ]
        order = {name: at for at, name in enumerate(_IN_ROWS)}
        return tuple(sorted(fields, key=lambda one: order.get(one.name, len(order))))

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            own = {key: value for key, value in schema.items() if key != "$ref"}
            name = schema["$ref"].rpartition("/")[2]
            schema = {**self._definitions[name], **own}
        return schema


_YES_NO: Final = (Option(True, "Yes"), Option(False, "No"))  # noqa: FBT003 - values of a field


def _hide_id(one: Field) -> Field:
    """The row's own id; one that names another resource has options instead."""
    return replace(one, kind=Kind.KEY) if one.name == "id" and one.kind is Kind.TEXT else one


def _branches(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for one in schema.get("anyOf") or schema.get("oneOf") or ():
        inner = one.get("oneOf") or one.get("anyOf")
        yield from inner or (one,)


def _number(schema: Mapping[str, Any], blank: Field) -> Field:
    return replace(
        blank,
        kind=Kind.NUMBER,
        is_whole=schema["type"] == "integer",
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
    )


def _kind_of_text(schema: Mapping[str, Any]) -> Kind:
    if schema.get("format") == "date-time":
        return Kind.MOMENT
    is_long = schema.get("maxLength", 0) >= _LONG_FROM_LETTERS
    return Kind.LONG if is_long else Kind.TEXT


def _options(values: Sequence[Any], blank: Field) -> tuple[Option, ...]:
    """An empty text beside null says the same, and is no option of its own."""
    wanted = [value for value in values if value != "" or not blank.is_nullable]
    return tuple(Option(value, "") for value in wanted)
