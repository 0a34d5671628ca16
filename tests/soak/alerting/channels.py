"""Alerts in a soak: channels to an unreliable receiver, checks of pages that fail, the books."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, make_url

from service.alerting.model import AlertPolicy, AlertType
from service.alerting.replay import Replay
from service.alerting.rules import choose_settings, read_policy
from service.results import actions as results
from tests.faults.ledger import open_books
from tests.faults.scene import Scene
from tests.soak.alerting.comparison import (
    Compared,
    Made,
    Notification,
    Told,
    compare,
)
from tests.soak.alerting.unreliable_site import GOING, SLOW_S, UnreliableSite, unreliable_site

QUICK: Final = {
    "ALERT_EGRESS_ALLOW": "127.0.0.0/8",
    "QUICK_BACKOFF_S": "0.5",
    "QUICK_MINUTE_S": "20",
}
"""For the service."""
_SCALE: Final = int(QUICK["QUICK_MINUTE_S"]) / 60
_NAME: Final = "Unsteady"
_ALL: Final = dict.fromkeys(("sendFailure", "sendDegraded", "sendRecovery"), True)
_CHANNELS: Final[Mapping[str, Mapping[str, bool]]] = MappingProxyType(
    {
        "all": _ALL,
        "failures": {**_ALL, "sendDegraded": False, "sendRecovery": False},
        "changes": {**_ALL, "sendDegraded": False},
        GOING: _ALL,
    }
)
_SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"runBasedEscalation": {"failedRunThreshold": 3}},
    {"reminders": {"amount": 100_000, "interval": 1}},
    {"escalationType": "TIME_BASED", "reminders": {"amount": 2, "interval": 1}},
    {},
)
"""The alert settings of the checks, one for each page."""
_MUTED: Final = 4
_FAULTS: Final = (
    "SELECT count(*) FROM result r JOIN check_ c ON c.id = r.check_id"
    " WHERE r.result_type = 'FINAL' AND r.status NOT IN ('PASSED', 'MISSED')"
    f" AND c.name LIKE '{_NAME} %'"
)
_ALERTS: Final = (
    "SELECT id, check_id, alert_type, result_id, reminder, notified FROM check_alert"
    " ORDER BY serial"
)
_NOTIFICATIONS: Final = (
    "SELECT n.id, alert_id, c.config, status, attempts, outcome"
    " FROM alert_notification n JOIN alert_channel c ON c.id = channel_id ORDER BY serial"
)


@dataclass(frozen=True, slots=True)
class Alerting:
    """Made by `alerting_of`."""

    site: UnreliableSite

    def bodies(self) -> list[dict[str, Any]]:
        """Checks of pages that fail at times."""
        return [self._body(page, settings) for page, settings in enumerate(_SETTINGS)]

    def _body(self, page: int, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": f"{_NAME} {page}",
            "request": {"method": "GET", "url": f"{self.site.url}/page/{page}"},
            "privateLocations": ["default"],
            "frequency": 0,
            "frequencyOffset": 10,
            "doubleCheck": False,
            "maxResponseTime": 30_000,
            "degradedResponseTime": round(SLOW_S * 500),
            "muted": page == _MUTED,
            "useGlobalAlertSettings": False,
            "alertSettings": dict(settings),
        }

    async def begin(self, scene: Scene) -> None:
        """Make the channels, which every check that is made later is subscribed to."""
        for name, switches in _CHANNELS.items():
            config = {"name": name, "url": f"{self.site.url}/channel/{name}", "method": "POST"}
            body = {"type": "WEBHOOK", "config": config, "autoSubscribe": True, **switches}
            await scene.ask("POST", "/v1/alert-channels", body)

    def compare(
        self, database: Path | str, checks: Mapping[str, Mapping[str, Any]], *, away_s: float = 0
    ) -> Compared:
        """Compare what there is with what there should be; `checks`: bodies by id.

        `away_s`: how long nobody could use the database.
        """
        swallowed = {
            check_id: ceil(1000 * away_s / _policy_of(body).reminder_ms)
            for check_id, body in checks.items()
        }
        return compare(replace(self._read(database, checks), swallowed=swallowed))

    def _read(self, database: Path | str, checks: Mapping[str, Mapping[str, Any]]) -> Told:
        with open_books(database) as books:
            ended = dict(books.execute("SELECT id, updated_ms FROM check_").fetchall())
            notifications = [
                Notification(first, alert, _name_in(config), *more)
                for first, alert, config, *more in books.execute(_NOTIFICATIONS)
            ]
            alerts = {
                alert_id: Made(check_id, AlertType(kind), result_id, reminder, bool(notified))
                for alert_id, check_id, kind, result_id, reminder, notified in books.execute(
                    _ALERTS
                )
            }
        engine = _engine(database)
        with engine.connect() as connection:
            replays = {
                check_id: _replay_of(connection, check_id, body, ended_ms=ended[check_id])
                for check_id, body in checks.items()
            }
        engine.dispose()
        return Told(
            replays=replays,
            channels=_CHANNELS,
            alerts=alerts,
            notifications=notifications,
            arrivals=self.site.arrivals,
        )


def _name_in(config: Any) -> str:
    """The name of a channel; SQLite keeps its settings as text."""
    return str((json.loads(config) if isinstance(config, str) else config)["name"])


def _engine(database: Path | str) -> Engine:
    if isinstance(database, Path):
        return create_engine(f"sqlite:///{database}")
    return create_engine(make_url(database).set(drivername="postgresql+psycopg"))


def _replay_of(
    connection: Connection, check_id: str, body: Mapping[str, Any], *, ended_ms: int
) -> Replay:
    """A check's results until it was deactivated: since then nothing counts."""
    window = (0, ended_ms + 1)
    runs = results.list_runs_as_stored(connection, check_id, window=window, limit=1_000_000)
    return Replay(
        runs=[run for run in runs if run.created_ms <= ended_ms],
        policy=_policy_of(body),
        locations=1,
        until_ms=ended_ms,
    )


def _policy_of(body: Mapping[str, Any]) -> AlertPolicy:
    """With minutes as short as the service's."""
    policy = read_policy(choose_settings(body, None), is_muted=body.get("muted", False))
    failing_ms = policy.failing_ms and round(policy.failing_ms * _SCALE)
    return replace(policy, failing_ms=failing_ms, reminder_ms=round(policy.reminder_ms * _SCALE))


def has_waiting(database: Path | str) -> bool:
    """Whether a notification is on its way."""
    query = "SELECT count(*) FROM alert_notification WHERE status = 'IN_PROGRESS'"
    return _count(database, query) > 0


def has_timers(database: Path | str) -> bool:
    """Whether an alert is due after some time."""
    return _count(database, "SELECT count(*) FROM alert_state WHERE timer_ms IS NOT NULL") > 0


def count_faults(database: Path | str) -> int:
    """How many runs found fault with pages that fail at times."""
    return _count(database, _FAULTS)


def _count(database: Path | str, query: str) -> int:
    with open_books(database) as books:
        found: int = books.execute(query).fetchone()[0]
    return found


@asynccontextmanager
async def alerting_of(scene: Scene, *, seed: object) -> AsyncIterator[Alerting]:
    """Serve the pages and the receiver."""
    async with unreliable_site(seed=seed, find_sender=lambda: scene.incarnation) as site:
        yield Alerting(site)
