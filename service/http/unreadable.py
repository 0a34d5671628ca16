"""Lists with items of which something stored cannot be read any more: they are shown, and named."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from service.http.errors import UnreadableError

RowT = TypeVar("RowT")

HEADER: Final = "x-unreadable-items"
_MOST: Final = 20
"""A page of them would be a header that proxies refuse."""
OPENAPI: Final = {
    HEADER: {
        "description": (
            "Where something stored cannot be read any more: the items that have `*********` in"
            " its place. Each of them, read by itself, says what to do."
        ),
        "schema": {"type": "string"},
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Generic[RowT]):
    """How the items of a list are shown."""

    show: Callable[[RowT], Any]
    """Raises `UnreadableError` where something does not open."""
    hide: Callable[[RowT], Any]
    """The same without what does not open."""
    name: Callable[[RowT], str]
    """What the header calls an item; letters, digits, dots, hyphens and underscores."""

    def shown(self, rows: Iterable[RowT]) -> tuple[list[Any], dict[str, str]]:
        """The items, and the header; none where all can be read."""
        found: list[Any] = []
        damaged: list[str] = []
        for row in rows:
            try:
                found.append(self.show(row))
            except UnreadableError:
                found.append(self.hide(row))
                damaged.append(self.name(row))
        return found, _header(damaged)


def _header(names: Sequence[str]) -> dict[str, str]:
    if not names:
        return {}
    more = f", and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return {HEADER: ", ".join(names[:_MOST]) + more}
