"""Certificates that expire soon: found in the newest results, and reported once per channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.evidence import BrowserEvidence, HttpEvidence, TlsFacts
from contract.result import Evidence, TcpEvidence
from service.accounts import actions as accounts
from service.alert_channels import actions as alert_channels
from service.alerting import store
from service.alerting.content import Occasion, build_alert
from service.alerting.model import AlertType, Certificate, StoredAlert
from service.alerting.steps import find_group_name, find_policy, read_places
from service.checks import actions as checks
from service.clock import Clock
from service.db.engine import Database
from service.db.ids import new_id
from service.results import actions as results
from service.results.model import StoredResult

EVERY_S: Final = 3600.0
_GROUP: Final = 100
"""How many checks one query looks at."""
_SOON_DAYS: Final = 30
"""The highest threshold that a channel may have."""
_DAY_MS: Final = 86_400_000
_NEWEST_RUNS: Final = 20
"""Among so many results the newest that looked at the target is looked for."""
_TYPES: Final = frozenset({CheckType.API, CheckType.BROWSER, CheckType.TCP, CheckType.URL})
"""The check types whose results have TLS evidence."""


class CertificateWatch:
    """Looks at the certificates of all checks, group by group, so that it holds nobody up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def look(self, database: Database) -> int:
        """Alert where certificates expire soon; about how many."""
        alerts = 0
        check_ids = await database.read(_list_checks)
        for start in range(0, len(check_ids), _GROUP):
            some = check_ids[start : start + _GROUP]
            for check_id in await database.read(partial(_find_soon, check_ids=some)):
                alerts += await database.write(partial(self._report, check_id=check_id))
        return alerts

    def _report(self, connection: Connection, *, check_id: str) -> int:
        return report_certificate(connection, check_id, now_ms=self._clock.now_ms(connection))


def _list_checks(connection: Connection) -> list[str]:
    return [
        check.id
        for account in accounts.list_accounts(connection)
        if alert_channels.watches_certificates(connection, account.id)
        for check in checks.list_names(connection, account.id)
        if check.type in _TYPES
    ]


def _find_soon(connection: Connection, *, check_ids: Sequence[str]) -> list[str]:
    return [
        check_id
        for check_id, newest in results.standings(connection, check_ids).items()
        if newest.days_to_expiry is not None and newest.days_to_expiry <= _SOON_DAYS
    ]


def report_certificate(connection: Connection, check_id: str, *, now_ms: int) -> int:
    """Alert about the certificate of a check unless it is silent; 1: somebody was notified.

    Channels have thresholds of their own, and know of which certificates they were notified.
    """
    terms = checks.find_terms(connection, check_id)
    seen = _find_seen(connection, check_id)
    if terms is None or seen is None or not terms.activated:
        return 0
    if find_policy(connection, terms, now_ms=now_ms).is_silent:
        return 0
    occasion = Occasion(
        id=new_id(now_ms),
        alert_type=AlertType.SSL,
        started_ms=now_ms,
        created_ms=now_ms,
        check_id=check_id,
        group_name=find_group_name(connection, terms),
        result=seen.result,
        certificate=Certificate(
            domain=seen.domain,
            subject=seen.tls.expires_first,
            days_remaining=seen.days - (now_ms - seen.result.started_ms) / _DAY_MS,
        ),
    )
    alert = build_alert(occasion, terms, read_places(connection, check_id))
    if not alert_channels.enqueue(connection, alert, now_ms=now_ms):
        return 0
    store.add_alert(connection, StoredAlert(alert=alert, notified=True))
    return 1


@dataclass(frozen=True, slots=True)
class _Seen:
    result: StoredResult
    domain: str
    tls: TlsFacts
    days: float
    """Days until the first certificate of the chain expired, when the run saw it."""


def _find_seen(connection: Connection, check_id: str) -> _Seen | None:
    """The certificates that the newest run saw. None: it saw none."""
    runs = results.list_newest_runs(connection, check_id, limit=_NEWEST_RUNS)
    newest = next((run for run in runs if run.status.judges_target), None)
    result = results.find(connection, check_id, newest.id) if newest else None
    found = _find_tls(result.detail.outcome.evidence) if result and result.detail else None
    if result is None or found is None or found[1].days_to_expiry is None:
        return None
    return _Seen(result, *found, found[1].days_to_expiry)


def _find_tls(evidence: Evidence | None) -> tuple[str, TlsFacts] | None:
    """The domain, and what was seen of its certificates."""
    match evidence:
        case HttpEvidence(tls=TlsFacts() as tls):
            url = evidence.hops[-1].url if evidence.hops else evidence.request.url
            return urlsplit(url).hostname or "", tls
        case TcpEvidence(tls=TlsFacts() as tls):
            return evidence.hostname, tls
        case BrowserEvidence(ssl_check_domain=str() as domain, tls=TlsFacts() as tls):
            return domain, tls
        case _:
            return None
