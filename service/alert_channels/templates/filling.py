"""Fills templates in, within bounds of steps and of size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from contract.templates import UNENCODED
from service.alert_channels.templates.functions import (
    FUNCTIONS,
    ArgumentError,
    Surroundings,
    Value,
    find_item,
    is_truthy,
    to_text,
)
from service.alert_channels.templates.parser import (
    Block,
    Call,
    Expression,
    Literal,
    Node,
    Output,
    Path,
    TemplateError,
    Text,
    parse,
)

MOST_STEPS: Final = 50_000
MOST_BYTES: Final = 256 * 1024
"""The longest text that comes of a budget, and the longest value that functions take or give."""


@dataclass(slots=True)
class Budget:
    """How much work templates may still be; shared by all fields of one notification."""

    _steps: int = MOST_STEPS
    _bytes: int = MOST_BYTES

    def spend_steps(self, count: int) -> None:
        """Take steps out of it.

        Raises:
            TemplateError: it has not so many.
        """
        self._steps -= count
        if self._steps < 0:
            raise TemplateError(f"takes more than {MOST_STEPS} steps to fill in")

    def spend_text(self, text: str) -> None:
        """Take the size of a text out of it.

        Raises:
            TemplateError: it has not so many bytes.
        """
        if len(text) <= self._bytes:  # no copy of a text that is too long anyway
            self._bytes -= len(text.encode(errors="replace"))
            if self._bytes >= 0:
                return
        raise TemplateError(f"becomes longer than {MOST_BYTES} bytes")


def fill(
    template: str,
    values: Mapping[str, Value],
    around: Surroundings,
    *,
    encodes: bool = True,
    budget: Budget | None = None,
) -> str:
    """The template with its values; `{{x}}` is URI-encoded like a whole URL, `{{{x}}}` is not.

    Without `encodes` neither is. `budget`: None stands for a full one.

    Raises:
        TemplateError: it cannot be read, takes too many steps, or becomes too long.
    """
    if "{{" not in template:
        return template
    nodes = parse(template)
    return _Filling(around, budget or Budget(), encodes=encodes).run(nodes, _Frame(values))


@dataclass(frozen=True, slots=True)
class _Frame:
    """What names mean inside a block."""

    this: Value
    outer: "_Frame | None" = None
    """None: there is no block around it."""
    data: Mapping[str, Value] = field(default_factory=dict)
    """`@index` and the like."""

    @property
    def root(self) -> "_Frame":
        return self if self.outer is None else self.outer.root


class _Filling:
    """One pass over the nodes of a template."""

    def __init__(self, around: Surroundings, budget: Budget, *, encodes: bool) -> None:
        self._around = around
        self._budget = budget
        self._encodes = encodes

    def run(self, nodes: Sequence[Node], frame: _Frame) -> str:
        return "".join(self._parts(nodes, frame))

    def _parts(self, nodes: Sequence[Node], frame: _Frame) -> Iterator[str]:
        for node in nodes:
            self._budget.spend_steps(1)
            match node:
                case Text(text):
                    yield self._measured(text)
                case Output(call, is_encoded):
                    text = to_text(_bounded(self._call(call, frame)))
                    encodes = is_encoded and self._encodes
                    yield self._measured(quote(text, safe=UNENCODED) if encodes else text)
                case Block():
                    yield from self._block(node, frame)

    def _measured(self, text: str) -> str:
        self._budget.spend_text(text)
        return text

    def _block(self, block: Block, frame: _Frame) -> Iterator[str]:
        name = ".".join(block.call.name.names)
        match name:
            case "each" if block.call.arguments:
                yield from self._each(block, frame)
            case "with" if block.call.arguments:
                value = self._value(block.call.arguments[0], frame)
                inner = _Frame(value, frame) if is_truthy(value) else None
                yield from self._chosen(block, inner, frame)
            case _ if name in FUNCTIONS:
                is_so = is_truthy(self._call(block.call, frame))
                yield from self._parts(block.body if is_so else block.otherwise, frame)
            case _:
                yield from self._section(block, frame)

    def _chosen(self, block: Block, inner: _Frame | None, frame: _Frame) -> Iterator[str]:
        if inner is None:
            yield from self._parts(block.otherwise, frame)
        else:
            yield from self._parts(block.body, inner)

    def _section(self, block: Block, frame: _Frame) -> Iterator[str]:
        """`{{#NAME}}…{{/NAME}}`: for each of a list, once for anything else that is true."""
        value = self._call(block.call, frame)
        if isinstance(value, list | tuple):
            yield from self._items(block, value, frame)
        else:
            inner = _Frame(value, frame) if isinstance(value, Mapping) else frame
            yield from self._chosen(block, inner if is_truthy(value) else None, frame)

    def _each(self, block: Block, frame: _Frame) -> Iterator[str]:
        value = self._value(block.call.arguments[0], frame)
        if isinstance(value, Mapping):
            yield from self._items(block, list(value.values()), frame, keys=list(value))
        else:
            items = value if isinstance(value, list | tuple) else ()
            yield from self._items(block, items, frame)

    def _items(
        self,
        block: Block,
        items: Sequence[Value],
        frame: _Frame,
        *,
        keys: Sequence[str] | None = None,
    ) -> Iterator[str]:
        if not items:
            yield from self._parts(block.otherwise, frame)
        for index, item in enumerate(items):
            data: dict[str, Value] = {
                "@index": index,
                "@key": keys[index] if keys else index,
                "@first": index == 0,
                "@last": index == len(items) - 1,
            }
            yield from self._parts(block.body, _Frame(item, frame, data))

    def _value(self, expression: Expression, frame: _Frame) -> Value:
        match expression:
            case Literal(value):
                return value
            case Path():
                return self._look_up(expression, frame)
            case Call():
                return self._call(expression, frame)

    def _call(self, call: Call, frame: _Frame) -> Value:
        self._budget.spend_steps(1)
        if not call.arguments and (found := self._look_up(call.name, frame)) is not None:
            return found  # a variable wins over a function of its name
        name = ".".join(call.name.names)
        function = FUNCTIONS.get(name)
        if function is not None:
            given = [_bounded(self._value(argument, frame)) for argument in call.arguments]
            self._budget.spend_steps(sum(map(_cost, given)))
            try:
                return _bounded(function(given, self._around))
            except ArgumentError as problem:
                raise TemplateError(f"calls {name}, whose {problem}") from None
        if call.arguments:
            raise TemplateError(f"calls {name}, which is no function")
        return None

    def _look_up(self, path: Path, frame: _Frame) -> Value:
        for _ in range(path.ups):
            frame = frame.outer or frame
        if not path.names:
            return frame.this
        first, *rest = path.names
        found = self._find(first, frame)
        for name in rest:
            found = find_item(found, name)
        return found

    def _find(self, name: str, frame: _Frame) -> Value:
        """In this block, or else in all of the template: variables are known everywhere."""
        if name.startswith("@"):
            at: _Frame | None = frame
            while at is not None:
                if name in at.data:
                    return at.data[name]
                at = at.outer
            return None
        found = find_item(frame.this, name)
        return find_item(frame.root.this, name) if found is None else found


def _cost(value: Value) -> int:
    """How many steps it takes to go through a value."""
    if isinstance(value, str):
        return len(value) // 64
    return 4 * len(value) if isinstance(value, list | tuple | Mapping) else 0


def _bounded(value: Value) -> Value:
    """The value; one that is too large is refused, since calls in calls multiply its size."""
    if _measure(value) > MOST_BYTES:
        raise TemplateError(f"has a value that becomes longer than {MOST_BYTES} bytes")
    return value


def _measure(value: Value) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + _measure(item) for key, item in value.items())
    return sum(1 + _measure(item) for item in value) if isinstance(value, list | tuple) else 0
