"""Which fields of a body were passed over: nobody should mistype a limit and never learn of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

HEADER: Final = "x-ignored-fields"
_MOST: Final = 20
_ANSWERED: Final = frozenset(
    {"id", "checkType", "created_at", "updated_at", "alertChannels", "pingUrl"}
)
"""What answers hold and clients send back."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.$-]{1,100}")


def ignored_header(body: object, read: BaseModel) -> dict[str, str]:
    """A header that names the fields that were passed over; none when there are none."""
    found = sorted(set(_ignored(body, read, "")))[:_MOST]
    return {HEADER: ", ".join(found)} if found else {}


def _ignored(sent: object, read: object, path: str) -> Iterator[str]:
    """Walk the body along the values that were read from it."""
    if isinstance(sent, Mapping) and isinstance(read, BaseModel):
        yield from _of_model(sent, read, path)
    if isinstance(sent, list) and isinstance(read, list):
        for order, (item, value) in enumerate(zip(sent, read, strict=False)):
            yield from _ignored(item, value, f"{path}[{order}]")


def _of_model(sent: Mapping[Any, object], read: BaseModel, path: str) -> Iterator[str]:
    fields = {info.alias or name: name for name, info in type(read).model_fields.items()}
    for key, item in sent.items():
        # A name that is not plain could break the header's line; it is told without its letters.
        name = key if _PLAIN_NAME.fullmatch(key) else "?"
        whole = f"{path}.{name}" if path else name
        if key in fields:
            yield from _ignored(item, getattr(read, fields[key]), whole)
        elif key not in _ANSWERED:
            yield whole
