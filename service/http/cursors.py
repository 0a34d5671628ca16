"""Lists that are read on from where they were left, whatever was added meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Query
from starlette.responses import Response

from service.http.routing import json
from service.http.schema import Text

RowT = TypeVar("RowT")

MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Cursor:
    """The requested part of a list."""

    limit: int
    after: str | None
    """The id of the item before the part. None: it is the list's beginning."""

    @property
    def one_more(self) -> int:
        """What to ask the database for: one item more tells whether there is a next part."""
        return self.limit + 1

    def answer(
        self, found: Sequence[RowT], show: Callable[[RowT], Any], name: Callable[[RowT], str]
    ) -> Response:
        """The part as a response; `found` has `one_more` items if there is a next one."""
        entries = [show(one) for one in found[: self.limit]]
        is_last = len(found) <= self.limit
        next_id = None if is_last else name(found[self.limit - 1])
        return json({"length": len(entries), "entries": entries, "nextId": next_id})


def _cursor(
    limit: Annotated[int, Query(ge=1, le=MOST, description="Entries in the answer.")] = 20,
    next_id: Annotated[
        Text | None,
        Query(alias="nextId", max_length=200, description="The `nextId` of the answer before."),
    ] = None,
) -> Cursor:
    return Cursor(limit, next_id or None)


CursorDep = Annotated[Cursor, Depends(_cursor)]
