"""What stands in the fields of a form, and the values that it means.

A state is made of texts: a text for a field, a tuple of texts for several choices, a mapping for a
group, a list for rows. A field that still says what was stored keeps its stored value as it is, so
that sending a form unchanged changes nothing, whatever a form cannot tell apart.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.web.forms.field_schema import ABSENT, Field, Kind, join, key_of

State = Any
"""A text, a tuple of texts, a mapping by the names of fields, or a list of states."""
SHAPE: Final = "#shape"
"""What the name of the field ends with that says which shape a value has."""
_INDEX: Final = re.compile(r"\[(\d{1,5})\]")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_LINE_ENDS: Final = re.compile(r"\r\n?")
_UTC: Final = re.compile(
    r"(?P<minute>\d{4}-\d\d-\d\dT\d\d:\d\d)(?P<second>:\d\d)?(?P<part>\.\d{1,3})?Z?", re.ASCII
)
_LOCAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)


class Sent:
    """The fields that a browser sent, by name."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: defaultdict[str, list[str]] = defaultdict(list)
        self._rows: defaultdict[str, set[int]] = defaultdict(set)
        for name, value in pairs:
            self._values[name].append(value)
            for index in _INDEX.finditer(name):
                self._rows[name[: index.start()]].add(int(index[1]))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def last(self, name: str) -> str:
        """The last value of a name that was sent."""
        return self._values[name][-1]

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a name, without the empty one that says that the field is there."""
        return tuple(value for value in self._values[name] if value)

    def rows(self, path: str) -> list[int]:
        """The numbers of the rows of a list; those that were taken out are missing."""
        return sorted(self._rows[path])


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A field whose text cannot be read."""

    path: str
    sentence: str


# Values as states.


def express(field: Field, value: Any) -> State:
    """What the form shows for a value; ABSENT shows the default."""
    if value is ABSENT:
        value = field.default
    if value is ABSENT:
        value = None
    match field.kind:
        case Kind.GROUP:
            return _express_group(field.fields, value)
        case Kind.ROWS:
            items = value if isinstance(value, list) else []
            return [_express_group(field.fields, item) for item in items]
        case Kind.SHAPES:
            return _express_shape(field, value)
        case Kind.CHOICES:
            return tuple(sorted({key_of(one) for one in _as_list(value)}))
        case _:
            return _express_text(field, value)


def _express_text(field: Field, value: Any) -> str:
    match field.kind:
        case Kind.JSON:
            return "" if value is None else _dump(value)
        case Kind.LINES:
            return "\n".join(_express_line(one) for one in _as_list(value))
        case Kind.CHECKBOX:
            return "true" if value else "false"
        case Kind.NUMBER:
            return _express_number(value)
        case Kind.MOMENT:
            return _express_moment(key_of(value), is_local=field.is_local)
        case _:
            return _LINE_ENDS.sub("\n", key_of(value))


def _express_moment(text: str, *, is_local: bool) -> str:
    """A time as a browser writes it: as short as it can be, and without its zone."""
    found = _UTC.fullmatch(text)
    if found is None or (is_local and text.endswith("Z")):
        return text
    part = (found["part"] or "").rstrip("0").removesuffix(".")
    second = "" if found["second"] in {None, ":00"} and not part else found["second"]
    return f"{found['minute']}{second}{part}"


def is_moment(text: str) -> bool:
    """Whether a browser's own field for times can show a text."""
    return not text or _LOCAL.fullmatch(text) is not None


def _express_number(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return key_of(int(value) if is_whole else value)


def _express_group(fields: Sequence[Field], value: Any) -> dict[str, State]:
    known = value if isinstance(value, Mapping) else {}
    return {one.name: express(one, known.get(one.name, ABSENT)) for one in fields}


def _express_shape(field: Field, value: Any) -> dict[str, State]:
    """The shape that a value has, and what stands in the fields of the object that it may be."""
    chosen = next((at for at, one in enumerate(field.shapes) if one.fits(value)), 0)
    inner = next(one.field for one in field.shapes if one.field)
    of_object = express(inner, value if isinstance(value, Mapping) else ABSENT)
    return {SHAPE: str(chosen), "of": of_object}


def _express_line(value: Any) -> str:
    """A line of a list; what would not come back from a plain line is quoted as JSON."""
    text = key_of(value)
    is_plain = text and text == text.strip() and not text.startswith('"') and text.isprintable()
    return text if is_plain or not isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# What was sent as states.


def collect(field: Field, sent: Sent, path: str) -> State:
    """What stood in a field when it was sent; ABSENT: the form did not have it."""
    match field.kind:
        case Kind.GROUP:
            return _collect_group(field.fields, sent, path)
        case Kind.ROWS:
            return _collect_rows(field, sent, path)
        case Kind.SHAPES:
            if path + SHAPE not in sent:
                return ABSENT
            inner = next(one.field for one in field.shapes if one.field)
            of_object = _collect_group(inner.fields, sent, path)
            state = express(inner, ABSENT) if of_object is ABSENT else of_object
            return {SHAPE: sent.last(path + SHAPE), "of": state}
    if path not in sent:
        return ABSENT
    return tuple(sorted(set(sent.all(path)))) if field.kind is Kind.CHOICES else sent.last(path)


def _collect_group(fields: Sequence[Field], sent: Sent, path: str) -> State:
    state = {one.name: collect(one, sent, join(path, one.name)) for one in fields}
    found = {name: one for name, one in state.items() if one is not ABSENT}
    return found or ABSENT


def _collect_rows(field: Field, sent: Sent, path: str) -> State:
    """The rows, without those in which nothing was filled in."""
    if path not in sent:
        return ABSENT
    rows = [_collect_group(field.fields, sent, f"{path}[{at}]") for at in sent.rows(path)]
    blank = blank_row(field)
    # Which row it was says nothing of what is in it.
    unseen = {one.name: "" for one in field.fields if one.kind is Kind.KEY}
    return [row for row in rows if row is not ABSENT and {**blank, **row, **unseen} != blank]


def blank_row(field: Field) -> dict[str, State]:
    """A row in which nothing is filled in; what has to be said of it, as `activated`, is yes."""
    switches = {one.name for one in field.fields if one.kind is Kind.CHECKBOX and one.is_required}
    return _express_group(field.fields, dict.fromkeys(switches, True))


# States as values.


class Parser:
    """Reads values out of states, and collects what cannot be read."""

    def __init__(self) -> None:
        self.unreadable: list[Unreadable] = []

    def parse(self, field: Field, state: State, stored: Any, path: str = "") -> Any:  # noqa: PLR0911 - a table
        """The value of a field. ABSENT: nothing is sent for it, and the API's default applies."""
        is_new = stored is ABSENT and field.is_required
        if state is ABSENT or (not is_new and _is_as_stored(field, state, stored)):
            return stored
        match field.kind:
            case Kind.GROUP:
                return self._group(field, state, stored, path)
            case Kind.ROWS:
                return self._rows(field, state, stored, path)
            case Kind.SHAPES:
                return self._shape(field, state, stored, path)
            case Kind.JSON:
                return self._json(field, state, path)
            case Kind.CHOICES:
                return _choices(field, state, stored)
            case _:
                return _scalar(field, state)

    def _group(self, field: Field, state: State, stored: Any, path: str) -> Any:
        before = stored if isinstance(stored, Mapping) else {}
        values = {
            one.name: self.parse(
                one,
                state.get(one.name, ABSENT),
                before.get(one.name, ABSENT),
                join(path, one.name),
            )
            for one in field.fields
        }
        changed = {name: one for name, one in values.items() if one is not ABSENT}
        is_left_out = stored is ABSENT and field.name and not field.is_required and not changed
        return ABSENT if is_left_out else {**before, **changed}

    def _rows(self, field: Field, state: State, stored: Any, path: str) -> list[Any]:
        """Rows that say what a stored one says are that one, with what has no field in it."""
        row = Field(name="", kind=Kind.GROUP, fields=field.fields)
        left = list(stored) if isinstance(stored, list) else []
        values = []
        for at, one in enumerate(state):
            same = next((old for old in left if _is_as_stored(row, one, old)), ABSENT)
            if same is not ABSENT:
                left.remove(same)
            values.append(self.parse(row, one, same, f"{path}[{at}]"))
        return values

    def _shape(self, field: Field, state: State, stored: Any, path: str) -> Any:
        chosen = state[SHAPE]
        if not chosen.isdigit() or int(chosen) >= len(field.shapes):
            return stored
        shape = field.shapes[int(chosen)]
        if shape.field is None:
            return shape.constant
        value = self.parse(shape.field, state["of"], stored if shape.fits(stored) else ABSENT, path)
        return {} if value is ABSENT else value

    def _json(self, field: Field, state: str, path: str) -> Any:
        if not state.strip():
            return None if field.is_nullable else ABSENT
        try:
            return json.loads(state)
        except ValueError as problem:
            self.unreadable.append(Unreadable(path, f"is not JSON: {str(problem).lower()}."))
            return ABSENT


def _is_as_stored(field: Field, state: State, stored: Any) -> bool:
    shown = express(field, stored)
    if field.kind is Kind.GROUP:
        return stored is not ABSENT and {**shown, **state} == shown
    return bool(state == shown)


def _choices(field: Field, state: tuple[str, ...], stored: Any) -> list[Any]:
    """Stored ones stay in their order; others follow in the order of the options."""
    kept = [one for one in _as_list(None if stored is ABSENT else stored) if key_of(one) in state]
    known = {one.key: one.value for one in field.options}
    before = {key_of(one) for one in kept}
    offered = [one.value for one in field.options if one.key in state and one.key not in before]
    unknown = [key for key in state if key not in known and key not in before]
    return [*kept, *offered, *unknown]


def _scalar(field: Field, state: str) -> Any:
    match field.kind:
        case Kind.CHECKBOX:
            return state == "true"
        case Kind.LINES:
            return [_read_line(field, line.strip()) for line in state.split("\n") if line.strip()]
        case Kind.CHOICE:
            return _choose(field, state.strip()) if state.strip() else _nothing(field)
        case Kind.NUMBER:
            return _read_number(field, state.strip()) if state.strip() else _nothing(field)
        case Kind.MOMENT:
            return _read_moment(field, state.strip()) if state.strip() else _nothing(field)
        case _:
            return state or (None if field.is_nullable and field.default != "" else "")


def _choose(field: Field, text: str) -> Any:
    """The option of a key; what is none is left to the API."""
    return {one.key: one.value for one in field.options}.get(text, text)


def _nothing(field: Field) -> Any:
    return None if field.is_nullable else ABSENT


def _read_line(field: Field, line: str) -> Any:
    if not field.is_text:
        return _read_number(field, line)
    if not line.startswith('"'):
        return line
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return value if isinstance(value, str) else line


def _read_moment(field: Field, text: str) -> str:
    return f"{text}Z" if _LOCAL.fullmatch(text) and not field.is_local else text


def _read_number(field: Field, text: str) -> Any:
    """A number; what is none is left to the API to refuse."""
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text)
    is_whole = number.is_integer() and abs(number) < 2**53
    return int(number) if is_whole and (field.is_whole or text.isdigit()) else number
