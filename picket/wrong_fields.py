"""Every field of a document that does not fit its type, not the first alone. Pure.

msgspec ends with the first mistake. What it refuses is therefore taken apart, and each part is
held against its own type, until the parts are found that are wrong by themselves.
"""

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from contract.sense import Wrong
from picket.field_errors import explain, split_problem


def wrong_fields(
    document: object, spec: type[msgspec.Struct], *, is_secret: bool = False
) -> Iterator[Wrong]:
    """The path of each wrong field, and what is wrong with it.

    `is_secret`: whether all of the document may be one; no value of it is told then.
    """
    for path, sentence in _mistakes(document, spec, "$"):
        yield explain(f"{sentence} - at `{path}`", document, spec, is_secret=is_secret)


def _mistakes(value: object, kind: Any, path: str) -> Iterator[Wrong]:
    """Paths, and msgspec's sentences on them."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as trouble:
        inner = list(_inside(value, kind, path))
        below, sentence = split_problem(str(trouble))
        yield from inner or [(path + below.removeprefix("$"), sentence)]


def _inside(value: object, kind: Any, path: str) -> Iterator[Wrong]:
    for branch in _branches(kind):
        if isinstance(value, Mapping) and _is_struct(branch):
            yield from _in_struct(value, branch, path)
        elif isinstance(value, list) and get_origin(branch) is tuple:
            for position, each in enumerate(value):
                yield from _mistakes(each, get_args(branch)[0], f"{path}[{position}]")


def _in_struct(
    value: Mapping[object, object], kind: type[msgspec.Struct], path: str
) -> Iterator[Wrong]:
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        if (field := known.get(str(key))) is not None:
            yield from _mistakes(inner, field.type, f"{path}.{key}")
    for name, field in known.items():
        if field.required and name not in value:
            yield path, f"Object missing required field `{name}`"


def _branches(kind: Any) -> tuple[Any, ...]:
    """The types that a union offers, without what only limits them."""
    if get_origin(kind) is Annotated:
        return _branches(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return tuple(branch for each in get_args(kind) for branch in _branches(each))
    return (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
