"""What the address of a list of checks asks for: filters, a range and a page."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from contract.checks import CheckType
from service.overview.model import CheckState, Grouping, Wanted
from service.web.check.ranges import RANGES

_MOST_LETTERS: Final = 200
_MOST_PAGES: Final = 10_000
RANGE_WORDS: Final = {
    "1h": "1 hour",
    "6h": "6 hours",
    "24h": "24 hours",
    "7d": "7 days",
    "30d": "30 days",
}
MUTED: Final = "muted"
MAINTENANCE: Final = "maintenance"
HOME: Final = "/"
TYPES: Final = tuple(kind for kind in CheckType if kind is not CheckType.AGENTIC)
TYPE_WORDS: Final[Mapping[CheckType, str]] = {
    CheckType.MULTI_STEP: "Multi-step",
    CheckType.BROWSER: "Browser",
    CheckType.HEARTBEAT: "Heartbeat",
    CheckType.PLAYWRIGHT: "Playwright",
    CheckType.AGENTIC: "Agentic",
}
"""What people call a type; the others are known by their own names."""


def type_word(kind: CheckType) -> str:
    """What people call a type of checks."""
    return TYPE_WORDS.get(kind, kind.value)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for."""

    wanted: Wanted
    range: str
    usual: str
    """The range that is shown where an address names none."""
    page: int
    home: str = HOME
    """The page that shows the list: the overview, or that of a group."""

    @property
    def part(self) -> str:
        """Where the list is alone, without the page around it."""
        return "/overview/list" if self.home == HOME else f"{self.home}/checks"

    def address(self, **changes: Any) -> str:
        """The query of the same list with changes: of a filter, the range or the page."""
        page = changes.pop("page", 1)
        length = changes.pop("range", self.range)
        one = replace(self.wanted, **changes)
        quiet = MUTED if one.is_muted else MAINTENANCE if one.is_maintained else ""
        pairs = [
            ("q", one.search),
            ("status", one.state or quiet),
            ("type", one.kind or ""),
            *(("tag", tag) for tag in one.tags),
            ("location", one.location),
            ("group", "" if one.group_id is None or self.home != HOME else one.group_id),
            ("by", one.grouping or ""),
            ("range", "" if length == self.usual else length),
            ("page", str(page) if page > 1 else ""),
        ]
        query = urlencode([(name, str(value)) for name, value in pairs if value])
        return f"?{query}" if query else ""


def read_address(query: QueryParams, *, usual: str) -> Asked:
    """What an address asks for; what it names that there is not is passed over."""
    status = query.get("status", "")
    length, page = query.get("range", ""), query.get("page", "")
    wanted = Wanted(
        search=_text(query.get("q", "")),
        state=_member(CheckState, status),
        is_muted=status == MUTED,
        is_maintained=status == MAINTENANCE,
        kind=_member(CheckType, query.get("type", "")),
        tags=tuple(dict.fromkeys(filter(None, map(_text, query.getlist("tag")))))[:20],
        location=_text(query.get("location", "")),
        group_id=_number(query.get("group", ""), most_digits=15),
        grouping=_member(Grouping, query.get("by", "")),
    )
    number = _number(page, most_digits=5) or 1
    return Asked(
        wanted,
        length if length in RANGES else usual,
        usual,
        min(max(number, 1), _MOST_PAGES),
    )


def _text(value: str) -> str:
    return value.replace("\0", "").strip()[:_MOST_LETTERS]


def _number(value: str, *, most_digits: int) -> int | None:
    is_number = value.isascii() and value.isdigit() and len(value) <= most_digits
    return int(value) if is_number else None


def _member(kind: Any, value: str) -> Any:
    return kind(value) if value in frozenset(kind) else None
