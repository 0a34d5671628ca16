"""Which fields of a body were passed over: nobody should mistype a limit and never learn of it."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel

from contract.near_names import near_name

HEADER: Final = "x-ignored-fields"
_MOST: Final = 20
_ANSWERED: Final = frozenset(
    {"id", "checkType", "created_at", "updated_at", "alertChannels", "pingUrl"}
)
"""What answers hold and clients send back."""
Passed = tuple[str, tuple[str, ...]]
"""The path of a field that was passed over, and the fields that are known there."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.$-]{1,100}")


def ignored_header(body: object, read: BaseModel) -> dict[str, str]:
    """A header that names the fields that were passed over; none when there are none."""
    # Likeness takes time, and a body may have a hundred thousand fields: only those told are tried.
    found = islice(sorted(dict(_ignored(body, read, "")).items()), _MOST)
    told = ", ".join(_with_near(path, known) for path, known in found)
    return {HEADER: told} if told else {}


def _with_near(path: str, known: tuple[str, ...]) -> str:
    meant = near_name(path.rpartition(".")[2], known)
    return f"{path} ({meant}?)" if meant else path


def _ignored(sent: object, read: object, path: str) -> Iterator[Passed]:
    """Walk the body along the values that were read from it."""
    if isinstance(sent, Mapping) and isinstance(read, BaseModel):
        yield from _of_model(sent, read, path)
    if isinstance(sent, list) and isinstance(read, list):
        for order, (item, value) in enumerate(zip(sent, read, strict=False)):
            yield from _ignored(item, value, f"{path}[{order}]")


def _of_model(sent: Mapping[Any, object], read: BaseModel, path: str) -> Iterator[Passed]:
    fields = {info.alias or name: name for name, info in type(read).model_fields.items()}
    known = tuple(fields)
    for key, item in sent.items():
        # A name that is not plain could break the header's line; it is told without its letters.
        name = key if _PLAIN_NAME.fullmatch(key) else "?"
        whole = f"{path}.{name}" if path else name
        if key in fields:
            yield from _ignored(item, getattr(read, fields[key]), whole)
        elif key not in _ANSWERED:
            yield whole, known
