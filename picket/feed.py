"""New results from the public API, by their time, as often as its rate limit allows."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from picket.api_client import ApiRefusedError, ApiUnreachableError, KnownCheck, PublicApi
from picket.board import Board, NewResult
from picket.result_view import read_result

_BETWEEN_REQUESTS_S: Final = 0.12
"""500 requests a minute; the API allows 600."""
_LIMIT: Final = 20
"""Results per request: more than one check has between two looks, unless it was away for long."""
_AWAY_PAUSE_S: Final = 1.0
_ROUNDS_PER_LISTING: Final = 10
"""Checks that somebody sets up meanwhile are shown after so many rounds."""

OnResults = Callable[[list[NewResult]], None]


class ResultFeed:
    """Puts every result on the board once, and tells who wants to know."""

    def __init__(
        self, api: PublicApi, board: Board, on_results: OnResults, *, since: datetime
    ) -> None:
        self._api = api
        self._since = since
        self._board = board
        self._on_results = on_results
        self._checks: list[KnownCheck] = []
        self._untold: list[NewResult] = []
        """Seen, but another check may have an older one that was not."""

    async def follow(self) -> None:
        """Look for new results until cancelled.

        A service that is away for a moment is looked for again: its end is noticed elsewhere.
        """
        try:
            while True:
                await self._look()
        finally:
            self._tell(until=None)

    async def _look(self) -> None:
        try:
            await self._list_checks()
            for _ in range(_ROUNDS_PER_LISTING):
                await self._round()
        except ApiUnreachableError:
            await asyncio.sleep(_AWAY_PAUSE_S)

    def _is_of_earlier_start(self, result: dict[str, Any]) -> bool:
        """It ended before this start; one that was due before it, and ends only now, is news."""
        return datetime.fromisoformat(result["stoppedAt"]) < self._since

    async def _list_checks(self) -> None:
        self._checks = await self._api.checks()
        for check in self._checks:
            self._board.add_check(check.id, check.name, check.kind)
        for deleted in self._board.standings.keys() - {check.id for check in self._checks}:
            self._board.remove_check(deleted)

    async def _round(self) -> None:
        began_at = datetime.now(UTC)
        for check in tuple(self._checks):
            try:
                seen = await self._api.results(check.id, limit=_LIMIT)
            except ApiRefusedError as refused:
                if refused.status != HTTPStatus.NOT_FOUND:
                    raise
                self._checks.remove(check)
                self._board.remove_check(check.id)
                continue
            self._take(check, seen)
            await asyncio.sleep(_BETWEEN_REQUESTS_S)
        self._tell(until=began_at)
        if not self._checks:
            await asyncio.sleep(_AWAY_PAUSE_S)

    def _take(self, check: KnownCheck, seen: list[dict[str, Any]]) -> None:
        earlier = [each for each in seen if self._is_of_earlier_start(each)]
        ours = [each for each in seen if not self._is_of_earlier_start(each)]
        self._board.recall(read_result(each, check) for each in earlier)
        self._untold += self._board.take(read_result(each, check) for each in ours)

    def _tell(self, *, until: datetime | None) -> None:
        """In the order of their time, as far as that is certain. None: whatever there is."""
        ready = [each for each in self._untold if until is None or each.at <= until]
        self._untold = [each for each in self._untold if each not in ready]
        if ready:
            self._on_results(sorted(ready, key=lambda each: each.at))
