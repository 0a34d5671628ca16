"""Computing series and summaries: exactly from results, or from roll-ups where results are gone."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import store
from service.analytics.distribution import Values
from service.analytics.histogram import Histogram
from service.analytics.hours import Block, build, bytes_per_result, unpack
from service.analytics.measures import RESPONSE_TIME, Analytics
from service.analytics.store import DAY, HOUR, Mark
from service.analytics.tallies import (
    Selection,
    Tallies,
    add_block,
    add_rollup,
    roll_up,
    unpack_rollup,
)
from service.analytics.windows import DAY_MS, HOUR_MS, Span
from service.analytics.worker import SqlResults, analytics_of
from service.clickhouse.copies import ClickHouse
from service.clickhouse.model import ArchiveError, FinalResults
from service.results.model import Finished

_GROUP: Final = 100
"""How many checks are read at once."""


@dataclass(frozen=True)
class Buckets:
    """Where the buckets of a series begin, and where the last one ends."""

    edges: Sequence[int]
    """In ms since 1970, rising; at least two."""
    span: Span
    """Only what lies in here counts."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    @cached_property
    def window(self) -> Span:
        """What of the span lies in the buckets."""
        return max(self.edges[0], self.span[0]), min(self.edges[-1], self.span[1])

    def at(self, time_ms: int) -> int:
        """The number of the bucket that a time of the window lies in."""
        return bisect_right(self.edges, time_ms) - 1


def is_exact(connection: Connection, span: Span, archive: ClickHouse | None = None) -> bool:
    """Whether every result of the window is there: none has been removed, or all were copied."""
    from_ms = _hour_of(span[0])
    if from_ms >= store.find_horizon(connection):
        return True
    if archive is None or archive.is_away or from_ms < archive.kept_from_ms:
        return False
    copied_from_ms = store.find_copied_from(connection)
    return copied_from_ms is not None and from_ms >= copied_from_ms


def is_small(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    window: Span,
    *,
    most: int,
    archive: ClickHouse | None = None,
) -> bool:
    """Whether checks (by id) have at most so many results in a window, all together.

    Those of blocks are counted by the length of these, which is known without reading them.

    Raises:
        ArchiveError: those in the archive cannot be counted.
    """
    hours, number = (_hour_of(window[0]), window[1]), 0
    removed = _removed_part(connection, hours, archive)
    if archive is not None and removed is not None:
        number = archive.count_finals(list(kinds), window=removed)
    for kind in set(kinds.values()):
        ids = [check_id for check_id, its_kind in kinds.items() if its_kind is kind]
        each = bytes_per_result(_known_analytics(kind))
        number += store.bytes_of_heads(connection, ids, window=hours) // each
    dirty = store.list_dirty(connection, list(kinds), hours=HOUR, window=hours)
    for hour_ms, ids in _by_hour(dirty):
        if number > most:
            return False
        own = (hour_ms, hour_ms + HOUR_MS)
        number += SqlResults(connection, kinds).count_finals(ids, window=own)
    return number <= most


def can_be_exact(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    window: Span,
    *,
    most: int,
    archive: ClickHouse | None = None,
) -> bool:
    """Whether every result of the window is there, and there are at most so many."""
    try:
        return is_exact(connection, window, archive) and is_small(
            connection, kinds, window, most=most, archive=archive
        )
    except ArchiveError:
        return False


def tally_exactly(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    buckets: Buckets,
    selections: Mapping[CheckType, Selection],
    archive: ClickHouse | None = None,
) -> dict[str, list[Tallies[Values]]]:
    """What results of checks (by id) come to, by check and bucket.

    Raises:
        ArchiveError: some are in the archive alone, and it does not answer.
    """
    found: dict[str, list[Tallies[Values]]] = {
        check_id: [{} for _ in range(buckets.count)] for check_id in kinds
    }
    blocks = _blocks(connection, kinds, buckets.window, selections, archive)
    for check_id, hour_ms, block in blocks:
        _spread(found[check_id], block, hour_ms, buckets, selections[kinds[check_id]])
    return found


def _hour_of(time_ms: int) -> int:
    return time_ms - time_ms % HOUR_MS


def _spread(
    tallies: Sequence[Tallies[Values]],
    block: Block,
    hour_ms: int,
    buckets: Buckets,
    selection: Selection,
) -> None:
    """Put the parts of an hour into the buckets that they belong to."""
    begin_ms, end_ms = buckets.window
    hour_end_ms = hour_ms + HOUR_MS
    if begin_ms <= hour_ms and hour_end_ms <= min(end_ms, buckets.edges[buckets.at(hour_ms) + 1]):
        add_block(tallies[buckets.at(hour_ms)], block, selection, part=(0, block.size))
        return
    start_ms = max(hour_ms, begin_ms)
    while start_ms < min(hour_end_ms, end_ms):
        number = buckets.at(start_ms)
        part_end_ms = min(buckets.edges[number + 1], hour_end_ms, end_ms)
        part = block.slice_of(start_ms - hour_ms, part_end_ms - hour_ms)
        add_block(tallies[number], block, selection, part=part)
        start_ms = part_end_ms


def _blocks(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    window: Span,
    selections: Mapping[CheckType, Selection],
    archive: ClickHouse | None,
) -> Iterator[tuple[str, int, Block]]:
    """The hours of a window: as they were packed, and anew where results came since or went."""
    hours = (_hour_of(window[0]), window[1])
    removed = _removed_part(connection, hours, archive)
    for some in _in_groups(list(kinds)):
        dirty = store.list_dirty(connection, some, hours=HOUR, window=hours)
        if removed is not None:
            dirty = tuple(mark for mark in dirty if not store.is_bare(connection, mark))
        stale = frozenset(dirty)
        known: set[tuple[str, int]] = set(dirty)
        are_whole = any(_needs_whole(selections[kinds[check_id]]) for check_id in some)
        for check_id, hour_ms, head, rest in store.list_blocks(
            connection, some, window=hours, are_whole=are_whole
        ):
            known.add((check_id, hour_ms))
            if (check_id, hour_ms) not in stale:
                yield check_id, hour_ms, unpack(head, rest)
        own = SqlResults(connection, kinds)
        for hour_ms, ids in _by_hour(dirty):
            hour = (hour_ms, hour_ms + HOUR_MS)
            yield from _build(own, kinds, ids, hour, with_bodies=are_whole)
        if archive is not None and removed is not None:
            for one in _build(archive, kinds, some, removed, with_bodies=are_whole):
                if one[:2] not in known:
                    yield one


def _removed_part(connection: Connection, hours: Span, archive: ClickHouse | None) -> Span | None:
    """The hours of a window of which results may be in the archive alone. None: there are none."""
    if archive is None:
        return None
    horizon_ms = store.find_horizon(connection)
    horizon_ms += -horizon_ms % HOUR_MS
    return (hours[0], min(hours[1], horizon_ms)) if hours[0] < horizon_ms else None


def _needs_whole(selection: Selection) -> bool:
    """Whether it counts what only the agent's own result tells."""
    if selection.dimensions is not None or selection.group_by is not None:
        return True
    return any(measure.name != RESPONSE_TIME for measure in selection.measures)


def _build(
    results: FinalResults,
    kinds: Mapping[str, CheckType],
    check_ids: Sequence[str],
    window: Span,
    *,
    with_bodies: bool,
) -> Iterator[tuple[str, int, Block]]:
    """Blocks of the results as a store has them, by check and hour."""
    finals = results.list_finals(check_ids, window=window, with_bodies=with_bodies)
    for (check_id, hour_ms), own in groupby(finals, key=_hour_of_check):
        yield check_id, hour_ms, build(own, _known_analytics(kinds[check_id]), hour_ms=hour_ms)


def _hour_of_check(final: Finished) -> tuple[str, int]:
    return final.check_id, _hour_of(final.started_ms)


def _by_hour(dirty: Iterable[Mark]) -> Iterator[tuple[int, list[str]]]:
    """Each hour with the checks that have changed in it."""
    for hour_ms, marks in groupby(sorted(dirty, key=itemgetter(1)), key=itemgetter(1)):
        yield hour_ms, [mark.check_id for mark in marks]


def _known_analytics(kind: CheckType) -> Analytics:
    return analytics_of(kind) or _NOTHING


_NOTHING: Final = Analytics(path="", has_response_time=False)


def tally_roughly(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    buckets: Buckets,
    selections: Mapping[CheckType, Selection],
) -> dict[str, list[Tallies[Histogram]]]:
    """What roll-ups of checks (by id) come to, by check and bucket; each hour as a whole."""
    found: dict[str, list[Tallies[Histogram]]] = {
        check_id: [{} for _ in range(buckets.count)] for check_id in kinds
    }
    window = (_hour_of(buckets.window[0]), buckets.window[1])
    for check_id, start_ms, body in _rollups(connection, kinds, window, buckets):
        tallies = found[check_id][buckets.at(max(start_ms, buckets.edges[0]))]
        add_rollup(tallies, unpack_rollup(body), selections[kinds[check_id]])
    for some in _in_groups(list(kinds)):
        dirty = store.list_dirty(connection, some, hours=HOUR, window=window)
        kept = [mark for mark in dirty if not store.is_bare(connection, mark)]
        are_whole = any(_needs_whole(selections[kinds[check_id]]) for check_id in some)
        for hour_ms, ids in _by_hour(kept):
            hour = (hour_ms, hour_ms + HOUR_MS)
            for check_id, start_ms, block in _build(
                SqlResults(connection, kinds), kinds, ids, hour, with_bodies=are_whole
            ):
                selection = selections[kinds[check_id]]
                tallies = found[check_id][buckets.at(max(start_ms, buckets.edges[0]))]
                add_rollup(tallies, roll_up(block, selection.measures), selection)
    return found


def _rollups(
    connection: Connection, kinds: Mapping[str, CheckType], window: Span, buckets: Buckets
) -> Iterator[tuple[str, int, bytes]]:
    """The roll-ups of a window: of each day that lies in one bucket, else of hours."""
    whole = _whole_days(window)
    split = _split_days(buckets)
    for some in _in_groups(list(kinds)):
        stale = {
            mark
            for mark in store.list_dirty(connection, some, hours=HOUR, window=window)
            if not store.is_bare(connection, mark)
        }
        # Each other day of which an hour is rolled up is rolled up itself, or marked.
        by_hour = {(one.check_id, _day_of(one.start_ms)) for one in stale}
        by_hour |= set(store.list_dirty(connection, some, hours=DAY, window=whole))
        told = set()
        for check_id, day_ms, body in store.list_rollups(connection, some, hours=DAY, window=whole):
            if day_ms not in split and (check_id, day_ms) not in by_hour:
                told.add((check_id, day_ms))
                yield check_id, day_ms, body
        days = split | {day_ms for _, day_ms in by_hour}
        for part in _rest(window, whole, days):
            for check_id, start_ms, body in store.list_rollups(
                connection, some, hours=HOUR, window=part
            ):
                is_told = (check_id, _day_of(start_ms)) in told
                if not is_told and (check_id, start_ms) not in stale:
                    yield check_id, start_ms, body


def _day_of(time_ms: int) -> int:
    return time_ms - time_ms % DAY_MS


def _whole_days(window: Span) -> Span:
    """Where the days begin that lie in a window as a whole; empty where none does."""
    first_ms = -(-window[0] // DAY_MS) * DAY_MS
    return first_ms, max(first_ms, _day_of(window[1]))


def _split_days(buckets: Buckets) -> set[int]:
    """The days of which not all is in one bucket."""
    return {_day_of(edge) for edge in buckets.edges if edge % DAY_MS}


def _rest(window: Span, whole: Span, days: Iterable[int]) -> Iterator[Span]:
    """The parts of a window that are not told by days: its ends, and these days."""
    if whole[0] == whole[1]:
        yield window
        return
    yield window[0], whole[0]
    end_ms = begin_ms = whole[0]
    for day_ms in sorted(day_ms for day_ms in days if whole[0] <= day_ms < whole[1]):
        if day_ms != end_ms:
            yield begin_ms, end_ms
            begin_ms = day_ms
        end_ms = day_ms + DAY_MS
    if end_ms != whole[1]:
        yield begin_ms, end_ms
        begin_ms = whole[1]
    yield begin_ms, window[1]


def _in_groups(check_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (check_ids[start : start + _GROUP] for start in range(0, len(check_ids), _GROUP))
