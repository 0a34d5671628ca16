"""What a template draws of a form: fields with their labels, states and problems."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from service.vault.texts import HIDDEN
from service.web.forms.field_labels import help_of, label_of, option_label, shorter_help, unit_of
from service.web.forms.field_schema import ABSENT, Field, Kind, Option, join, key_of
from service.web.forms.form_state import SHAPE, State, blank_row, express, is_moment

_FEW: Final = 4
"""Options that are shown side by side, not in a menu."""
_FEW_WORDS: Final = 5
_SPARE_ROWS: Final = 2
"""Empty rows for whoever has no script."""
_STORED: Final = "stored; empty keeps it"
ROW_NUMBER: Final = "__row__"
"""Stands for the number of a row that the page's script adds."""
_INDEX: Final = re.compile(r"\[[^\]]*\]")
_SECRET_WORDS: Final = ("password", "passphrase")
_CODE: Final = frozenset(
    {"cert", "ca", "script", "localSetupScript", "localTearDownScript", "content", "body"}
)
_WIDE: Final = frozenset({"body", "description", "prompt", "message", "template"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An option as it is drawn."""

    key: str
    label: str
    is_chosen: bool
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A field as it is drawn."""

    name: str
    """Its path in the body, which is the name of its input."""
    field_name: str
    kind: Kind
    label: str
    help: str
    value: str = ""
    items: tuple[Item, ...] = ()
    """What CHOICE, CHOICES and SHAPES may be."""
    is_radio: bool = False
    is_required: bool = False
    is_secret: bool = False
    is_code: bool = False
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    step: str = "any"
    rows: int = 0
    """How many lines a text of several lines shows."""
    inside: tuple["Control", ...] = ()
    """What GROUP, SHAPES, and a row are made of; of a NUMBER, its unit, if it can be chosen."""
    lines: tuple["Control", ...] = ()
    """The rows of ROWS."""
    spare: tuple["Control", ...] = ()
    """Empty rows of ROWS, and the one to copy: the last."""
    hint: str = ""
    """What stands in an empty field."""
    problem: str = ""
    is_first_problem: bool = False

    @property
    def says_little(self) -> bool:
        """Whether its help repeats its label: it is only read out."""
        return len(self.help.split()) <= _FEW_WORDS and ":" not in self.help

    @property
    def item(self) -> str:
        """What one of its rows is called: `header` of `Headers`. Empty: its label says nothing."""
        is_plain = self.label.endswith("s") and " and " not in self.label
        return self.label[:-1].lower() if is_plain else ""

    @property
    def id(self) -> str:
        """What its label refers to."""
        return f"f-{self.name}"

    @property
    def chosen(self) -> str:
        """The labels of what is chosen."""
        return ", ".join(one.label for one in self.items if one.is_chosen)

    @property
    def has_problem(self) -> bool:
        """Whether anything in it is wrong."""
        inside = (*self.inside, *self.lines)
        return bool(self.problem) or any(one.has_problem for one in inside)

    @property
    def lacks_choices(self) -> bool:
        """Whether a new row would have nothing to choose from."""
        inside = self.spare[-1].inside if self.spare else ()
        menus = (one for one in inside if one.kind is Kind.CHOICE)
        return any(not any(item.key for item in one.items) for one in menus)

    @property
    def is_one_line(self) -> bool:
        """Whether all of a row stands side by side."""
        narrow = {Kind.TEXT, Kind.NUMBER, Kind.CHOICE, Kind.CHECKBOX, Kind.KEY}
        return all(one.kind in narrow for one in self.inside)


def build(field: Field, state: State, path: str = "") -> Control:
    """Draw a field."""
    blank = Control(
        name=path,
        field_name=field.name,
        kind=field.kind,
        label=field.label or label_of(field.name),
        help=help_of(
            shorter_help(field.name) or field.help,
            nothing=_name_nothing(field),
            is_hidden=isinstance(state, str) and HIDDEN in state,
        ),
        is_required=field.is_required,
    )
    match field.kind:
        case Kind.GROUP:
            return replace(blank, inside=_inside(field.fields, state, path))
        case Kind.ROWS:
            return _rows(field, state, blank)
        case Kind.SHAPES:
            return _shapes(field, state, blank)
        case Kind.CHOICE | Kind.CHOICES:
            return _choices(field, state, blank)
        case _:
            return _text(field, state, blank)


def place_problems(
    controls: Sequence[Control], problems: Mapping[str, str]
) -> tuple[tuple[Control, ...], tuple[str, ...]]:
    """Put each problem at the field that it is about; the others stand for themselves."""
    names = {one.name for one in walk(controls)}
    at: dict[str, list[str]] = {}
    loose = []
    for path, sentence in problems.items():
        place = _nearest(path, names)
        if place:
            at.setdefault(place, []).append(sentence)
        else:
            loose.append(sentence)
    first = next((one.name for one in walk(controls) if one.name in at), "")
    placed = tuple(_place(one, at, first) for one in controls)
    return placed, tuple(loose)


def walk(controls: Sequence[Control]) -> Iterator[Control]:
    """All fields that are filled in, in the order of the page."""
    for one in controls:
        yield one
        yield from walk(one.inside)
        yield from walk(one.lines)


def _place(one: Control, at: Mapping[str, list[str]], first: str) -> Control:
    return replace(
        one,
        problem=" ".join(at.get(one.name, ())),
        is_first_problem=one.name == first and bool(first),
        inside=tuple(_place(each, at, first) for each in one.inside),
        lines=tuple(_place(each, at, first) for each in one.lines),
    )


def _nearest(path: str, names: set[str]) -> str:
    """The field of a path, or the next one around it."""
    while path and path not in names:
        cut = max(path.rfind("."), path.rfind("["))
        path = path[: max(cut, 0)]
    return path


def _inside(fields: Sequence[Field], state: Mapping[str, State], path: str) -> tuple[Control, ...]:
    drawn = (
        build(
            one, state[one.name] if one.name in state else express(one, None), join(path, one.name)
        )
        for one in fields
    )
    keeps = state.get("secret") == "true" and state.get("value") == ""
    return _join_units(
        replace(one, hint=_STORED, help="") if keeps and one.field_name == "value" else one
        for one in drawn
    )


def _join_units(drawn: Iterable[Control]) -> tuple[Control, ...]:
    """Numbers with the unit that stands beside them: `period` has `periodUnit`."""
    by_name = {one.field_name: one for one in drawn}
    units = {name: by_name.get(f"{name}Unit") for name in by_name}
    return tuple(
        replace(one, inside=(unit,)) if (unit := units[name]) else one
        for name, one in by_name.items()
        if one not in units.values()
    )


def _rows(field: Field, state: Sequence[Any], blank: Control) -> Control:
    def row(at: int | str, one: State) -> Control:
        path = f"{blank.name}[{at}]"
        inside = _inside(field.fields, one, path)
        return Control(name=path, field_name="", kind=Kind.GROUP, label="", help="", inside=inside)

    empty = blank_row(field)
    spare = [row(len(state) + more, empty) for more in range(_SPARE_ROWS)]
    return replace(
        blank,
        lines=tuple(row(at, one) for at, one in enumerate(state)),
        spare=(*spare, row(ROW_NUMBER, empty)),
    )


def _shapes(field: Field, state: Mapping[str, State], blank: Control) -> Control:
    inner = next(one.field for one in field.shapes if one.field)
    # Where a group can leave something to its checks, null says no more.
    nothing = any(one.constant == _FALLBACK for one in field.shapes) and "None of its own"
    items = tuple(
        Item(
            key=str(at),
            label=(shape.constant is None and nothing)
            or _shape_label(field.name, shape.constant, is_object=shape.field is not None),
            is_chosen=state[SHAPE] == str(at),
            data={"object": ""} if shape.field else {},
        )
        for at, shape in enumerate(field.shapes)
    )
    return replace(blank, items=items, inside=_inside(inner.fields, state["of"], blank.name))


_NOT_SET: Final = "Not set"
_NO_CHOICE: Final[Mapping[str, str]] = {
    "engine": "Not set: Node.js",
    "groupId": "No group",
    "runParallel": "As each check says",
    "runtimeId": "The agent's newest",
    "setupSnippetId": "No snippet",
    "tearDownSnippetId": "No snippet",
}
"""What a choice says of null."""
_NOTHING: Final[Mapping[str, str]] = {
    "alertSettings": "None of its own",
    "basicAuth": "Send none",
    "retryStrategy": "One retry, at once",
    "triggerIncident": "No",
}
_SOMETHING: Final[Mapping[str, str]] = {
    "alertSettings": "Its own",
    "retryStrategy": "As set here",
    "triggerIncident": "Yes",
    "basicAuth": "Send these",
}
_FALLBACK: Final = "FALLBACK"
_CONSTANTS: Final[Mapping[str, str]] = {_FALLBACK: "Left to the checks"}


def _name_no_choice(field: Field) -> str:
    if not field.is_nullable:
        return "Choose\N{HORIZONTAL ELLIPSIS}"
    return _NO_CHOICE.get(field.name, _NOT_SET)


def _name_nothing(field: Field) -> str:
    """What a field says where the API has null."""
    match field.kind:
        case Kind.SHAPES:
            return _NOTHING.get(field.name, "None")
        case Kind.CHOICE:
            return _name_no_choice(field)
        case _:
            return "Empty"


def _shape_label(name: str, constant: Any, *, is_object: bool) -> str:
    if is_object:
        return _SOMETHING.get(name, "Set")
    if constant is None:
        return _NOTHING.get(name, "None")
    return _CONSTANTS.get(str(constant), option_label(name, constant))


def _choices(field: Field, state: State, blank: Control) -> Control:
    chosen = (state,) if isinstance(state, str) else state
    options = list(field.options)
    known = {one.key for one in options}
    is_list = field.kind is Kind.CHOICES
    # What is stored and is no option any more stays chosen.
    options += [Option(key, f"{key} (unknown)") for key in chosen if key and key not in known]
    is_open = not is_list and not field.is_nullable and not chosen[0]
    # Null says what the default says; it is offered where it is stored.
    is_null = field.is_nullable and (field.default in (None, ABSENT) or not chosen[0])
    if not is_list and (is_null or is_open) and "" not in known:
        options.insert(0, Option(None, _name_no_choice(field)))
    items = tuple(
        Item(
            key=one.key,
            label=one.label or option_label(field.name, one.value),
            is_chosen=one.key in chosen,
            data=one.data,
        )
        for one in options
    )
    is_radio = not is_list and not is_open and len(items) <= _FEW and "[" not in blank.name
    return replace(blank, items=items, is_radio=is_radio)


def _text(field: Field, state: str, blank: Control) -> Control:
    kind = field.kind
    if kind is Kind.TEXT and ("\n" in state or field.name in _CODE | _WIDE):
        kind = Kind.LONG
    if kind is Kind.MOMENT and not is_moment(state):
        kind = Kind.TEXT
    if kind is Kind.LONG and "[" in blank.name and "\n" not in state and field.name not in _CODE:
        kind = Kind.TEXT
    is_code = field.name in _CODE or kind is Kind.JSON
    zone = "By the clock of its time zone." if field.is_local else "In UTC."
    return replace(
        blank,
        kind=kind,
        help=f"{blank.help} {zone}".strip() if field.kind is Kind.MOMENT else blank.help,
        value=state,
        is_secret=any(word in field.name.lower() for word in _SECRET_WORDS),
        is_code=is_code,
        unit=unit_of(field.name),
        minimum="" if field.minimum is None else key_of(field.minimum),
        maximum="" if field.maximum is None else key_of(field.maximum),
        step="1" if field.is_whole else "any",
        rows=_height(kind, state, name=field.name, is_code=is_code),
    )


def _least_height(name: str, *, is_code: bool) -> int:
    if name == "script":
        return 18
    return 6 if is_code else 3


def _height(kind: Kind, state: str, *, name: str, is_code: bool) -> int:
    lines = state.count("\n") + 1
    match kind:
        case Kind.LINES:
            return min(max(lines, 2), 12)
        case Kind.LONG | Kind.JSON:
            return min(max(lines + 1, _least_height(name, is_code=is_code)), 40)
        case _:
            return 0
