"""Reads templates: the parts of Handlebars that webhooks use, and nothing that runs code."""

import re
from dataclasses import dataclass, field
from typing import Final

MOST_LETTERS: Final = 100_000
"""Longer templates are refused."""
_MOST_DEPTH: Final = 20


class TemplateError(ValueError):
    """A template cannot be read or filled in; says why, and where."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the template."""

    value: object


@dataclass(frozen=True, slots=True)
class Path:
    """Names a value: `TAGS`, `this`, `../NAME`, `@index`."""

    ups: int
    """How many `../` it begins with."""
    names: tuple[str, ...]
    """Empty: `this`."""

    def __str__(self) -> str:
        return "../" * self.ups + (".".join(self.names) or "this")


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; without any, it may be a value's name as well."""

    name: Path
    arguments: tuple["Expression", ...] = ()


Expression = Literal | Path | Call


@dataclass(frozen=True, slots=True)
class Text:
    """Stands in the template as it is sent."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """`{{x}}` or `{{{x}}}`."""

    call: Call
    is_encoded: bool


@dataclass(frozen=True, slots=True)
class Block:
    """`{{#x}}…{{else}}…{{/x}}`."""

    call: Call
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


Node = Text | Output | Block

_TAG: Final = re.compile(
    r"\\(?P<kept>\{\{\{?[^{}]*\}\}\}?)"
    # What is left out has no braces in it: a search for a far end, from each start, takes too long.
    r"|\{\{(?P<l1>~?)![^{}]*?(?P<r1>~?)\}\}"
    r"|\{\{(?P<l3>~?)\{(?P<raw>[^{}]*)\}(?P<r3>~?)\}\}"
    r"|\{\{(?P<l2>~?)(?P<kind>[#/^&]?)(?P<inner>[^{}]*?)(?P<r2>~?)\}\}",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>\"[^\"]*\"|'[^']*')|(?P<number>-?\d+(?:\.\d+)?)(?![\w.])|(?P<bracket>[()])"
    r"|(?P<path>(?:\.\./)*[@$]?[\w$-]+(?:[./]\[?[\w$-]+\]?)*|(?:\.\./)+|\.\.|\.))"
)
_WORDS: Final = {"true": True, "false": False, "null": None, "undefined": None}


def parse(template: str) -> tuple[Node, ...]:
    """Read a template.

    Raises:
        TemplateError: it is too long, or no template.
    """
    if len(template) > MOST_LETTERS:
        raise TemplateError(f"has {len(template)} characters; use at most {MOST_LETTERS}")
    return _Reading(template).read()


@dataclass(slots=True)
class _Open:
    """A block whose end has not come yet."""

    call: Call
    name: str
    """What ends it. Empty: the end of the block around it does."""
    body: list[Node] = field(default_factory=list)
    otherwise: list[Node] = field(default_factory=list)
    is_otherwise: bool = False
    """Whether its `else` has come."""

    @property
    def nodes(self) -> list[Node]:
        return self.otherwise if self.is_otherwise else self.body

    def close(self) -> Block:
        return Block(self.call, tuple(self.body), tuple(self.otherwise))


class _Reading:
    """One pass over a template."""

    def __init__(self, template: str) -> None:
        self._template = template
        self._root: list[Node] = []
        self._open: list[_Open] = []

    def read(self) -> tuple[Node, ...]:
        position, strips = 0, False
        for tag in _TAG.finditer(self._template):
            text = self._template[position : tag.start()]
            text = text.lstrip() if strips else text
            position = tag.end()
            strips = bool(tag["r1"] or tag["r2"] or tag["r3"])
            self._add_text(text.rstrip() if tag["l1"] or tag["l2"] or tag["l3"] else text)
            self._take(tag)
        rest = self._template[position:]
        self._add_text(rest.lstrip() if strips else rest)
        if self._open:
            name = self._open[-1].name or str(self._open[-1].call.name)
            raise TemplateError(f"has no {{{{/{name}}}}} for its {{{{#{name}}}}}")
        return tuple(self._root)

    def _add_text(self, text: str) -> None:
        """What stands between tags; braces in it are those of a tag that has no end."""
        if "{{" in text:
            raise TemplateError("has a {{ that no }} closes")
        self._add(Text(text))

    def _add(self, node: Node) -> None:
        if not isinstance(node, Text) or node.text:
            (self._open[-1].nodes if self._open else self._root).append(node)

    def _take(self, tag: re.Match[str]) -> None:
        if tag["kept"] is not None:
            self._add(Text(tag["kept"]))
        elif tag["raw"] is not None:
            self._add(Output(parse_call(tag["raw"]), is_encoded=False))
        elif tag["inner"] is not None:
            self._take_simple(tag["kind"], tag["inner"].strip())

    def _take_simple(self, kind: str, inner: str) -> None:
        word, _, rest = inner.partition(" ")
        match kind:
            case "#":
                self._begin(parse_call(inner), word)
            case "/":
                self._end(inner)
            case "^" if inner:
                self._begin(Call(Path(0, ("unless",)), (parse_call(inner),)), word)
            case "&":
                self._add(Output(parse_call(inner), is_encoded=False))
            case _ if word == "else" or kind == "^":
                self._turn(rest.strip())
            case _:
                self._add(Output(parse_call(inner), is_encoded=True))

    def _begin(self, call: Call, name: str) -> None:
        if len(self._open) >= _MOST_DEPTH:
            raise TemplateError(f"has blocks more than {_MOST_DEPTH} deep")
        self._open.append(_Open(call, name))

    def _turn(self, condition: str) -> None:
        """`{{else}}`, or `{{else if x}}`, which is a block of its own inside."""
        if not self._open or self._open[-1].is_otherwise:
            raise TemplateError("has an {{else}} outside a block, or a second one in it")
        self._open[-1].is_otherwise = True
        if condition:
            self._begin(parse_call(condition), "")

    def _end(self, name: str) -> None:
        while self._open and not self._open[-1].name:
            inner = self._open.pop().close()
            self._open[-1].nodes.append(inner)
        if not self._open or self._open[-1].name != name:
            raise TemplateError(f"has {{{{/{name}}}}} where no {{{{#{name}}}}} is open")
        self._add(self._open.pop().close())


def parse_call(text: str) -> Call:
    """What stands between braces.

    Raises:
        TemplateError: it is no expression.
    """
    tokens = _tokenize(text)
    call = _read_call(tokens, text, depth=0)
    if tokens:
        raise TemplateError(f"has {{{{{text}}}}}, which is no expression")
    return call


def _tokenize(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise TemplateError(f"has {{{{{text}}}}}, which is no expression")
        found.append(token)
        position = token.end()
    found.reverse()
    return found


def _read_call(tokens: list[re.Match[str]], text: str, *, depth: int) -> Call:
    if not tokens or not tokens[-1]["path"] or depth > _MOST_DEPTH:
        raise TemplateError(f"has {{{{{text}}}}}, which is no expression")
    name = _read_path(tokens.pop()["path"])
    arguments: list[Expression] = []
    while tokens and tokens[-1]["bracket"] != ")":
        arguments.append(_read_argument(tokens, text, depth=depth))
    return Call(name, tuple(arguments))


def _read_argument(tokens: list[re.Match[str]], text: str, *, depth: int) -> Expression:
    token = tokens.pop()
    if token["text"] is not None:
        return Literal(token["text"][1:-1])
    if token["number"] is not None:
        number = float(token["number"])
        return Literal(int(number) if number.is_integer() else number)
    if token["path"] is not None:
        word = token["path"]
        return Literal(_WORDS[word]) if word in _WORDS else _read_path(word)
    call = _read_call(tokens, text, depth=depth + 1)
    if not tokens:
        raise TemplateError(f"has {{{{{text}}}}}, in which a bracket is not closed")
    tokens.pop()
    return call


def _read_path(text: str) -> Path:
    ups = 0
    while text.startswith(".."):
        ups, text = ups + 1, text[2:].removeprefix("/")
    names = tuple(name.strip("[]") for name in re.split(r"[./]", text) if name)
    return Path(ups, names[1:] if names[:1] == ("this",) else names)
