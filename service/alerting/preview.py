"""Previews: which alerts other settings would have led to, by the results that are stored."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from service.alerting.replay import Replay, ReplayedAlert, replay
from service.alerting.rules import read_policy
from service.alerting.views import PreviewShown, PreviewWanted, render_previewed
from service.checks import actions as checks
from service.checks.model import CheckName
from service.groups import actions as groups
from service.http.errors import InvalidError
from service.http.times import moment, query_time_ms
from service.results import actions as results

LONGEST_MS: Final = 30 * 86_400_000
MOST_RESULTS: Final = 50_000
"""A month of one check that runs each minute; replaying them takes a second."""
MOST_ALERTS: Final = 1_000
"""The most that are listed; a reminder each minute makes more."""


def preview(
    connection: Connection, account_id: str, wanted: PreviewWanted, *, now_ms: int
) -> PreviewShown:
    """Replay the stored results of a check, or of a group's checks.

    Raises:
        NotFoundError: the account has no such check or group.
        InvalidError: neither or both are named, or the window is too long or has too many results.
    """
    window = _find_window(wanted, now_ms)
    found: list[tuple[CheckName, ReplayedAlert]] = []
    left = MOST_RESULTS
    for check in _find_checks(connection, account_id, wanted):
        runs = results.list_runs_as_stored(connection, check.id, window=window, limit=left + 1)
        left -= len(runs)
        if left < 0:
            raise InvalidError(
                f"The window has more than {MOST_RESULTS} results; choose a shorter one.",
                keys=("from", "to"),
            )
        terms = checks.find_terms(connection, check.id)
        if terms is not None:
            settings = wanted.alert_settings.model_dump(mode="json", by_alias=True)
            locations = len(checks.find_locations(connection, check.id))
            given = Replay(
                runs=runs,
                policy=read_policy(settings, is_muted=terms.muted),
                locations=locations if terms.run_parallel else 1,
                until_ms=min(window[1], now_ms),
            )
            found += ((check, alert) for alert in replay(given))
    found.sort(key=lambda pair: pair[1].at_ms)
    shown = {
        "from": moment(window[0]),
        "to": moment(window[1]),
        "results": MOST_RESULTS - left,
        "alerts": [render_previewed(*pair) for pair in found[:MOST_ALERTS]],
        "alertsLeftOut": max(0, len(found) - MOST_ALERTS),
    }
    return PreviewShown.model_validate(shown)


def _find_checks(
    connection: Connection, account_id: str, wanted: PreviewWanted
) -> Sequence[CheckName]:
    if (wanted.check_id is None) == (wanted.group_id is None):
        raise InvalidError(
            'Name either a check as "checkId" or a group as "groupId".',
            keys=("checkId", "groupId"),
        )
    if wanted.check_id is not None:
        return [checks.find_name(connection, account_id, wanted.check_id)]
    group = groups.find(connection, account_id, wanted.group_id or 0)
    return checks.list_member_names(connection, account_id, group.id)


def _find_window(wanted: PreviewWanted, now_ms: int) -> tuple[int, int]:
    to_ms = _read_time("to", wanted.until)
    until_ms = now_ms + 1 if to_ms is None else to_ms
    from_ms = _read_time("from", wanted.since)
    since_ms = until_ms - LONGEST_MS if from_ms is None else from_ms
    if since_ms > until_ms:
        raise InvalidError('"from" is later than "to"; swap them.', keys=("from", "to"))
    if until_ms - since_ms > LONGEST_MS:
        raise InvalidError(
            '"from" and "to" are more than 30 days apart; choose a shorter window.',
            keys=("from", "to"),
        )
    return max(0, since_ms), until_ms


def _read_time(name: str, given: str | int | None) -> int | None:
    return query_time_ms(name, None if given is None else str(given), source="payload")
