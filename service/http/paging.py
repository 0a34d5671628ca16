"""Pages of a list: `limit` and `page`."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted."""

    limit: int
    number: int
    """From 1."""

    @property
    def offset(self) -> int:
        """How many items stand before it."""
        return (self.number - 1) * self.limit


def _page(
    limit: Annotated[int, Query(ge=1, le=100, description="Items on a page.")] = 10,
    page: Annotated[int, Query(ge=0, le=1_000_000, description="From 1; 0 is taken for 1.")] = 1,
) -> Page:
    return Page(limit, max(page, 1))


PageDep = Annotated[Page, Depends(_page)]
