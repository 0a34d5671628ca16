"""Results in ClickHouse: one table, which the service creates.

A result that was copied twice counts once: rows with the same key are merged by the engine, and
queries read with FINAL until they are.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from service.analytics.windows import DAY_MS
from service.clickhouse.model import ArchiveError
from service.errors import SettingsError
from service.results.model import Finished, RunStatus

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

TABLE: Final = "picket_result"
_COLUMNS: Final = (
    "id",
    "check_id",
    "started_ms",
    "location",
    "status",
    "attempt",
    "response_time_ms",
    "body",
    "version",
)
_CREATE: Final = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    check_id String CODEC(ZSTD),
    started_ms Int64,
    id String,
    location LowCardinality(String),
    status LowCardinality(String),
    attempt UInt16,
    response_time_ms Nullable(Float64),
    body String CODEC(ZSTD(3)),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(toDateTime(intDiv(started_ms, 1000), 'UTC'))
ORDER BY (check_id, started_ms, id)
"""
_TTL: Final = "toDateTime(intDiv(started_ms, 1000), 'UTC') + toIntervalDay({days})"
_DEFINITION: Final = """
SELECT create_table_query FROM system.tables
WHERE database = currentDatabase() AND name = {table:String}
"""
_FROM: Final = (
    f"FROM {TABLE} FINAL WHERE check_id IN {{check_ids:Array(String)}}"
    " AND started_ms >= {from_ms:Int64} AND started_ms < {to_ms:Int64}"
)
_LIST: Final = (
    "SELECT id, check_id, started_ms, location, status, attempt, response_time_ms, {body}"
    f" {_FROM.replace('{', '{{').replace('}', '}}')} ORDER BY check_id, started_ms, id"
)
_WITH_BODIES: Final = _LIST.format(body="body")
_WITHOUT_BODIES: Final = _LIST.format(body="'' AS body")
_COUNT: Final = f"SELECT count() {_FROM}"
_NAMED: Final = {"table": TABLE}
# A row stays in its month, so no version of it is in another partition.
_SETTINGS: Final = {"do_not_merge_across_partitions_select_final": 1}
_CONNECT_S: Final = 3
_READ_S: Final = 10
_WRITE_S: Final = 60
_PAUSE_S: Final = 30.0
"""How long nobody reads after a failure."""
_CODE: Final = re.compile(r"\bcode:? (\d+)", re.IGNORECASE)
_REASONS: Final = {
    "81": "there is no such database",
    "192": "it refused the user or the password",
    "193": "it refused the user or the password",
    "194": "it refused the user or the password",
    "497": "the user lacks a right",
    "516": "it refused the user or the password",
}
_STATUSES: Final = {status.value: status for status in RunStatus}


def open_archive(url: str | None, *, days: int) -> "ClickHouse | None":
    """ClickHouse, which is not asked yet. None: nothing is copied.

    Raises:
        SettingsError: its client library is missing.
    """
    if url is None:
        return None
    try:
        import clickhouse_connect  # noqa: F401, PLC0415 - an extra installs it
    except ModuleNotFoundError as problem:
        said = "CLICKHOUSE_URL needs the extra clickhouse; install picket-monitoring[clickhouse]"
        raise SettingsError((said,)) from problem
    return ClickHouse(url, days=days)


class ClickHouse:
    """Keeps copies of results, and reads them; each call blocks its thread."""

    def __init__(
        self, url: str, *, days: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Take where it is, and for how many days it keeps results; 0: for ever."""
        self._url = url
        self._days = days
        self._monotonic = monotonic
        self._away_until = 0.0

    @property
    def is_away(self) -> bool:
        """Whether it failed within the last half minute."""
        return self._monotonic() < self._away_until

    @property
    def kept_from_ms(self) -> int:
        """ClickHouse removes what is older at a time of its own."""
        return time.time_ns() // 1_000_000 - self._days * DAY_MS if self._days else 0

    def has_table(self) -> bool:
        """Whether the table is there, be it empty."""
        with self._explained():
            return bool(self._writer.query(_DEFINITION, parameters=_NAMED).result_rows)

    def create_table(self) -> None:
        """Create the table if it is missing, and have it keep results as long as the settings say.

        Several services may do so at once.
        """
        with self._explained():
            self._writer.command(_CREATE)
            [(definition,)] = self._writer.query(_DEFINITION, parameters=_NAMED).result_rows
            has_ttl = "toIntervalDay(" in definition
            if self._days and f"toIntervalDay({self._days})" not in definition:
                ttl = _TTL.format(days=self._days)
                self._writer.command(f"ALTER TABLE {TABLE} MODIFY TTL {ttl}")
            elif has_ttl and not self._days:
                self._writer.command(f"ALTER TABLE {TABLE} REMOVE TTL")

    def insert(self, finals: Iterable[Finished], *, version: int) -> None:
        """Store results; of two copies, that with the higher version counts."""
        rows = [(*one[:4], one.status.value, *one[5:7], one.body or b"", version) for one in finals]
        if rows:
            with self._explained():
                self._writer.insert(TABLE, rows, column_names=_COLUMNS)

    def list_finals(
        self, check_ids: Sequence[str], *, window: tuple[int, int], with_bodies: bool
    ) -> Iterator[Finished]:
        """Copies of the results of a window, by check and time.

        Raises:
            ArchiveError: it does not answer.
        """
        statement = _WITH_BODIES if with_bodies else _WITHOUT_BODIES
        with (
            self._explained(),
            self._reader.query_row_block_stream(
                statement,
                parameters=_parameters(check_ids, window),
                settings=_SETTINGS,
                column_formats={"body": "bytes"},
            ) as blocks,
        ):
            for block in blocks:
                for result_id, check_id, ts, location, status, attempt, time_ms, body in block:
                    known = (result_id, check_id, ts, location, _STATUSES[status], attempt)
                    yield Finished._make((*known, time_ms, body or None))

    def count_finals(self, check_ids: Sequence[str], *, window: tuple[int, int]) -> int:
        """How many `list_finals` has.

        Raises:
            ArchiveError: it does not answer.
        """
        with self._explained():
            asked = _parameters(check_ids, window)
            [(count,)] = self._reader.query(
                _COUNT, parameters=asked, settings=_SETTINGS
            ).result_rows
            return int(count)

    def close(self) -> None:
        """Let go of the server."""
        for name in ("_reader", "_writer"):
            client = self.__dict__.pop(name, None)
            if client is not None:
                client.close()

    @cached_property
    def _reader(self) -> "Client":
        return _connect(self._url, limit_s=_READ_S)

    @cached_property
    def _writer(self) -> "Client":
        return _connect(self._url, limit_s=_WRITE_S)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from clickhouse_connect.driver.exceptions import ClickHouseError  # noqa: PLC0415

        try:
            yield
        except ClickHouseError as problem:
            self._away_until = self._monotonic() + _PAUSE_S
            raise ArchiveError(_explain(problem)) from problem


def _connect(url: str, *, limit_s: int) -> "Client":
    """A client, which may be used by several threads; it asks the server for its version.

    Raises:
        ClickHouseError: there is no server, or it does not let us in.
    """
    from clickhouse_connect import get_client  # noqa: PLC0415 - an extra installs it

    scheme = urlsplit(url).scheme
    if scheme == "chdb":
        return get_client(dsn=url)
    return get_client(
        dsn=url,
        interface=scheme,
        connect_timeout=_CONNECT_S,
        send_receive_timeout=limit_s,
        autogenerate_session_id=False,
    )


def _explain(problem: Exception) -> str:
    """The reason in a few words: what a server says may quote what it was sent."""
    found = _CODE.search(str(problem))
    if found is None:
        return "it cannot be reached"
    return _REASONS.get(found[1], f"it refused with its error {found[1]}")


def _parameters(check_ids: Sequence[str], window: tuple[int, int]) -> dict[str, Any]:
    return {"check_ids": list(check_ids), "from_ms": window[0], "to_ms": window[1]}
