"""Counting results: what a block or a roll-up of an hour adds to the buckets of a series."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec

from service.analytics.distribution import Aggregation, Distribution, Values, compute
from service.analytics.histogram import Histogram, Packed
from service.analytics.hours import Block
from service.analytics.measures import AVAILABILITY, RETRIES, GroupBy, Measure, Metric

DistributionT = TypeVar("DistributionT", Values, Histogram)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results are counted, of what, and how they are split."""

    measures: tuple[Measure, ...]
    """Those that are stored as numbers."""
    group_by: GroupBy | None = None
    """None: they are not split."""
    succeeded: bool | None = None
    """None: either."""
    dimensions: frozenset[int] | None = None
    """Status codes or states. None: any."""

    @property
    def takes_all(self) -> bool:
        """Whether each result counts."""
        return self.succeeded is None and self.dimensions is None


class Group(msgspec.Struct, array_like=True, frozen=True):
    """What distinguishes results; in a split series one field is set."""

    location: str = ""
    dimension: int = 0
    page: int = -1
    """Position of a page in its run. -1: this is about runs."""
    succeeded: bool = True


ALL: Final = Group()
"""The group of a series that is not split."""


@dataclass(slots=True)
class Tally(Generic[DistributionT]):
    """What was counted in a bucket."""

    numbers: dict[str, DistributionT] = field(default_factory=dict)
    """By measure."""
    runs: int = 0
    successes: int = 0
    retries: int = 0
    page_url: str = ""
    """The last URL of the page. Empty: this is about runs."""

    def count(self, *, runs: int, successes: int, retries: int) -> None:
        """Take runs."""
        self.runs += runs
        self.successes += successes
        self.retries += retries

    def value_of(self, metric: Metric) -> float | None:
        """The number that was asked for. None: there is no data."""
        if metric.measure is AVAILABILITY:
            return 100 * self.successes / self.runs if self.runs else None
        if metric.measure is RETRIES:
            return self.retries if self.runs else None
        return self.compute(metric.measure.name, metric.aggregation)

    def compute(self, measure: str, aggregation: Aggregation) -> float | None:
        """One number of those of a measure. None: there are none."""
        numbers: Distribution | None = self.numbers.get(measure)
        return compute(numbers, aggregation) if numbers is not None else None


Tallies = dict[Group, Tally[DistributionT]]
"""What was counted, by group."""


def add_block(
    tallies: Tallies[Values], block: Block, selection: Selection, *, part: tuple[int, int]
) -> None:
    """Count the results of a part of a block, which is a range of positions."""
    if part[0] == part[1]:
        return
    if selection.takes_all and selection.group_by is None:
        rows = range(*part)
        _count(_tally_of(tallies, ALL), block, rows, selection.measures)
        return
    wanted = [row for row in range(*part) if _is_wanted(block, selection, row)]
    if selection.group_by is GroupBy.PAGE_INDEX:
        _add_pages(tallies, block, selection, frozenset(wanted), part=part)
        return
    for group, some in _split(block, selection.group_by, wanted).items():
        _count(_tally_of(tallies, group), block, some, selection.measures)


def _tally_of(tallies: Tallies[Values], group: Group) -> Tally[Values]:
    return tallies.setdefault(group, Tally())


def _is_wanted(block: Block, selection: Selection, row: int) -> bool:
    if selection.succeeded is not None and block.successes[row] != selection.succeeded:
        return False
    return selection.dimensions is None or _dimension(block, row) in selection.dimensions


def _dimension(block: Block, row: int) -> int:
    return memoryview(block.dimensions).cast("H")[row] if block.dimensions else 0


def _location(block: Block, row: int) -> str:
    return block.locations[memoryview(block.location_of).cast("H")[row]]


def _split(
    block: Block, group_by: GroupBy | None, rows: Iterable[int]
) -> Mapping[Group, Sequence[int]]:
    groups: dict[Group, list[int]] = {}
    for row in rows:
        groups.setdefault(_group_of(block, group_by, row), []).append(row)
    return groups


def _group_of(block: Block, group_by: GroupBy | None, row: int) -> Group:
    match group_by:
        case GroupBy.RUN_LOCATION:
            return Group(location=_location(block, row))
        case GroupBy.STATUS_CODE:
            return Group(dimension=_dimension(block, row))
        case _:
            return ALL


def _count(
    tally: Tally[Values], block: Block, rows: Sequence[int], measures: Iterable[Measure]
) -> None:
    """Count runs, with those of their numbers that are not split by page."""
    successes, attempts = _slice(block.successes, rows), _slice(block.attempts, rows)
    tally.count(runs=len(rows), successes=successes.count(1), retries=sum(attempts) - len(attempts))
    pages: Sequence[int] | None = None
    for measure in measures:
        column = _numbers(block.columns.get(measure.name))
        if column is not None:
            _extend(tally, measure, column, rows)
        elif block.pages is not None:
            pages = _pages_of(block, rows) if pages is None else pages
            page_column = _numbers(block.pages.columns.get(measure.name))
            if page_column is not None:
                _extend(tally, measure, page_column, pages)


def _extend(
    tally: Tally[Values], measure: Measure, column: Sequence[float], rows: Sequence[int]
) -> None:
    some = column[rows.start : rows.stop] if isinstance(rows, range) else _pick(column, rows)
    # A number that is not equal to itself stands where there is none.
    numbers = [number for number in some if number == number]  # noqa: PLR0124
    if measure.name in tally.numbers:
        tally.numbers[measure.name].extend(numbers)
    else:
        tally.numbers[measure.name] = Values(numbers)


def _slice(column: bytes, rows: Sequence[int]) -> bytes:
    if isinstance(rows, range):
        return column[rows.start : rows.stop]
    return bytes(map(column.__getitem__, rows))


def _pick(column: Sequence[float], rows: Iterable[int]) -> Iterable[float]:
    return map(column.__getitem__, rows)


def _numbers(column: bytes | None) -> Sequence[float] | None:
    """None: the measure has no such column."""
    if column is None:
        return None
    return memoryview(column).cast("d") if column else ()


def _pages_of(block: Block, rows: Sequence[int]) -> Sequence[int]:
    if not rows or block.pages is None:
        return ()
    pages = range(*block.pages_of(rows[0], rows[-1] + 1))
    if isinstance(rows, range):
        return pages
    row_of, among = memoryview(block.pages.rows).cast("I"), frozenset(rows)
    return [page for page in pages if row_of[page] in among]


def _add_pages(
    tallies: Tallies[Values],
    block: Block,
    selection: Selection,
    wanted: frozenset[int],
    *,
    part: tuple[int, int],
) -> None:
    """Count the wanted runs once for each page that they showed."""
    pages = block.pages
    if pages is None or not pages.rows:
        return
    row_of, indexes = memoryview(pages.rows).cast("I"), memoryview(pages.indexes).cast("H")
    groups: dict[int, list[int]] = {}
    for page in range(*block.pages_of(*part)):
        if row_of[page] in wanted:
            groups.setdefault(indexes[page], []).append(page)
    for index, shown in groups.items():
        tally = _tally_of(tallies, Group(page=index))
        tally.page_url = pages.urls[shown[-1]]
        rows = [row_of[page] for page in shown]
        own = [one for one in selection.measures if one.page_source]
        of_runs = [one for one in selection.measures if not one.page_source]
        _count(tally, block, rows, of_runs)
        for measure in own:
            column = _numbers(pages.columns.get(measure.name))
            if column is not None:
                _extend(tally, measure, column, shown)


class RolledGroup(msgspec.Struct, array_like=True, frozen=True):
    """The results of one group of an hour or a day."""

    group: Group
    runs: int
    retries: int
    numbers: dict[str, msgspec.Raw]
    """By measure, each a `Packed`, which is read when it is asked for."""
    page_url: str = ""
    """The last URL of the page. Empty: this is about runs."""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder_of_numbers: Final = msgspec.msgpack.Decoder(Packed)
_decoder: Final = msgspec.msgpack.Decoder(tuple[RolledGroup, ...])


def pack_rollup(groups: Sequence[RolledGroup]) -> bytes:
    """A roll-up as it is stored."""
    return _encoder.encode(groups)


def unpack_rollup(body: bytes) -> tuple[RolledGroup, ...]:
    """A stored roll-up."""
    return _decoder.decode(body)


def _pack_numbers(numbers: Histogram) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(numbers.pack()))


def roll_up(block: Block, measures: tuple[Measure, ...]) -> tuple[RolledGroup, ...]:
    """The roll-up of a block: of each place, dimension and outcome, and of each page."""
    everything = range(block.size)
    groups: dict[Group, list[int]] = {}
    for row in everything:
        group = Group(
            location=_location(block, row),
            dimension=_dimension(block, row),
            succeeded=bool(block.successes[row]),
        )
        groups.setdefault(group, []).append(row)
    found: Tallies[Values] = {}
    for group, rows in groups.items():
        _count(_tally_of(found, group), block, rows, measures)
    for succeeded in (True, False) if block.pages is not None else ():
        found |= _pages_by_outcome(block, measures, succeeded=succeeded)
    return tuple(_rolled(group, tally) for group, tally in found.items())


def _pages_by_outcome(
    block: Block, measures: tuple[Measure, ...], *, succeeded: bool
) -> Tallies[Values]:
    wanted = frozenset(row for row in range(block.size) if block.successes[row] == succeeded)
    found: Tallies[Values] = {}
    selection = Selection(measures=measures)
    _add_pages(found, block, selection, wanted, part=(0, block.size))
    return {
        msgspec.structs.replace(group, succeeded=succeeded): tally for group, tally in found.items()
    }


def _rolled(group: Group, tally: Tally[Values]) -> RolledGroup:
    numbers = {
        name: _pack_numbers(Histogram.of(values.in_order()))
        for name, values in tally.numbers.items()
        if values.count
    }
    return RolledGroup(group, tally.runs, tally.retries, numbers, tally.page_url)


def merge_rollups(rollups: Iterable[Iterable[RolledGroup]]) -> tuple[RolledGroup, ...]:
    """The roll-up of what several others are about, in the order of time."""
    found: Tallies[Histogram] = {}
    for rolled in rollups:
        for one in rolled:
            _merge(found.setdefault(one.group, Tally()), one, one.numbers)
    return tuple(
        RolledGroup(
            group,
            tally.runs,
            tally.retries,
            {name: _pack_numbers(numbers) for name, numbers in tally.numbers.items()},
            tally.page_url,
        )
        for group, tally in found.items()
    )


def add_rollup(
    tallies: Tallies[Histogram], rolled: Iterable[RolledGroup], selection: Selection
) -> None:
    """Count the results of an hour or a day."""
    is_about_pages = selection.group_by is GroupBy.PAGE_INDEX
    names = [measure.name for measure in selection.measures]
    key_of = _KEYS.get(selection.group_by, _all_in_one)
    for one in rolled:
        group = one.group
        if (group.page >= 0) is not is_about_pages:
            continue
        if selection.succeeded is not None and group.succeeded is not selection.succeeded:
            continue
        if selection.dimensions is not None and group.dimension not in selection.dimensions:
            continue
        key = key_of(group)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
        _merge(tally, one, names)


def _all_in_one(_group: Group) -> Group:
    return ALL


_KEYS: Final[Mapping[GroupBy | None, Callable[[Group], Group]]] = {
    GroupBy.RUN_LOCATION: lambda group: Group(location=group.location),
    GroupBy.STATUS_CODE: lambda group: Group(dimension=group.dimension),
    GroupBy.PAGE_INDEX: lambda group: Group(page=group.page),
}


def _merge(tally: Tally[Histogram], one: RolledGroup, names: Iterable[str]) -> None:
    tally.runs += one.runs
    tally.successes += one.runs if one.group.succeeded else 0
    tally.retries += one.retries
    tally.page_url = one.page_url or tally.page_url
    for name in names:
        raw = one.numbers.get(name)
        if raw is None:
            continue
        packed = _decoder_of_numbers.decode(raw)
        if name in tally.numbers:
            tally.numbers[name].merge(packed)
        else:
            tally.numbers[name] = Histogram(packed)
