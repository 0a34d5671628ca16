"""A large account in a fresh data folder: checks with tags, a group and results, but no agent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.evidence import Hop, HttpEvidence, SeenResponse, SentRequest, TlsFacts
from contract.job import RunSource
from contract.result import Outcome, Result, Status, Timings
from contract.wire import encode
from service.accounts.actions import first_start, require_pepper
from service.accounts.keys import Pepper
from service.accounts.model import FirstSecrets, GivenKeys
from service.checks import changes as checks
from service.checks.schemas import CheckWrite
from service.checks.types.api import ApiCheckWrite
from service.checks.types.tcp import TcpCheckWrite
from service.checks.types.url import UrlCheckWrite
from service.db.engine import Database
from service.db.migrate import migrate
from service.db.sqlite import open_sqlite
from service.groups import api as groups
from service.groups.schemas import GroupWrite
from service.results.model import Record, ResultType, RunStatus
from service.results.recording import record
from service.vault.encryption import Scope, Vault

T = TypeVar("T")

API_KEY: Final = "cu_benchmark_key_0123456789abcdefghij"
PEPPER: Final = "a pepper of the benchmark, no secret at all"
EVERYONE, SOME, NOBODY = "all", "few", "none"
"""Tags: of every check, of one in a thousand, of none."""
MEMBERS: Final = 1_000
"""Checks of the group."""
GROUP_BODY: Final = {"name": "Shop", "privateLocations": ["default"], "tags": ["group"]}
_HOUR_MS: Final = 3_600_000
_TEAMS: Final = 50


@dataclass(frozen=True, slots=True)
class Filled:
    """What was put into the database."""

    file: Path
    group_id: int


async def fill(file: Path, *, size: int, results: int, now_ms: int) -> Filled:
    """Make the account: so many checks, with so many results each, one an hour back from now."""
    database = open_sqlite(file)
    await database.write(migrate)
    secrets = await database.write(lambda c: _begin(c, now_ms))
    scope = Scope(secrets.account_id, now_ms, Vault([bytes(32)]))
    group = await database.write(
        lambda c: groups.create(c, scope, GroupWrite.model_validate(GROUP_BODY), auto_assign=False)
    )
    made: list[tuple[str, CheckType]] = []
    for numbers in _in_groups(range(size), 500):
        made += await database.write(
            lambda c, numbers=numbers: [_add(c, scope, number, group.id) for number in numbers]
        )
    await _store_results(database, made, secrets.location_id, results=results, now_ms=now_ms)
    await database.close()
    return Filled(file, group.id)


def _in_groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while group := list(islice(left, size)):
        yield group


def _begin(connection: Connection, now_ms: int) -> FirstSecrets:
    pepper = Pepper(PEPPER.encode())
    require_pepper(connection, pepper)
    made = first_start(connection, pepper, now_ms=now_ms, given=GivenKeys(api_key=API_KEY))
    if made is None:
        raise RuntimeError("The database is not fresh.")
    return made


def _add(connection: Connection, scope: Scope, number: int, group_id: int) -> tuple[str, CheckType]:
    """Each a millisecond after the one before."""
    body = _body(number, group_id if number < MEMBERS else None)
    then = replace(scope, now_ms=scope.now_ms + number)
    return checks.create(connection, then, body, auto_assign=False).id, body.kind


def _body(number: int, group_id: int | None) -> CheckWrite:
    tags = [EVERYONE, f"team-{number % _TEAMS}", *([SOME] if number % 1_000 == 7 else [])]
    common = {
        "name": f"Check {number} of the shop",
        "tags": tags,
        "frequency": 1440,
        "groupId": group_id,
        "privateLocations": ["default"],
    }
    url = f"https://shop.example/page/{number}"
    match number % 10:
        case 0 | 1 | 2:
            headers = [{"key": "x-tenant", "value": "north"}, {"key": "accept", "value": "*/*"}]
            request = {"method": "GET", "url": url, "headers": headers, "assertions": [_PASSES]}
            return ApiCheckWrite.model_validate({**common, "request": request})
        case 3:
            port = {"hostname": "shop.example", "port": 443}
            return TcpCheckWrite.model_validate({**common, "request": port})
        case _:
            page = {"url": url, "assertions": [_PASSES]}
            return UrlCheckWrite.model_validate({**common, "request": page})


_PASSES: Final = {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}


async def _store_results(
    database: Database,
    made: list[tuple[str, CheckType]],
    location_id: str,
    *,
    results: int,
    now_ms: int,
) -> None:
    """Hour by hour, as they would have come in."""
    starts = (now_ms - hour * _HOUR_MS for hour in range(results, 0, -1))
    runs = _records(made, location_id, starts)
    for some in _in_groups(runs, 5_000):
        await database.write(lambda c, some=some: record(c, some, now_ms=now_ms))


def _records(
    made: list[tuple[str, CheckType]], location_id: str, starts: Iterator[int]
) -> Iterator[Record]:
    run_ids = count(1_000_000)
    for start_ms in starts:
        for number, (check_id, kind) in enumerate(made):
            run_id = next(run_ids)
            seen = _result(check_id, kind, run_id, took_ms=10.0 + number % 90)
            yield _record(seen, location_id, run_id, start_ms=start_ms)


def _record(seen: Result, location_id: str, run_id: int, *, start_ms: int) -> Record:
    return Record(
        check_id=seen.check_id,
        run_id=run_id,
        fence=1,
        session_id=None,
        location_id=location_id,
        source=RunSource.SCHEDULER,
        result_type=ResultType.FINAL,
        status=RunStatus.PASSED,
        attempt=1,
        response_time_ms=seen.outcome.response_time_ms,
        scheduled_ms=start_ms,
        started_ms=start_ms,
        stopped_ms=start_ms + 100,
        body=encode(seen),
    )


def _result(check_id: str, kind: CheckType, run_id: int, *, took_ms: float) -> Result:
    outcome = Outcome(
        status=Status.PASSED,
        response_time_ms=took_ms,
        timings=Timings(dns=0.5, tcp=1.5, tls=4.0, first_byte=took_ms - 6, total=took_ms),
        evidence=_EVIDENCE,
    )
    return Result(
        job_id=str(run_id),
        fence=1,
        run_id=str(run_id),
        check_id=check_id,
        check_type=kind,
        agent_id="0123456789abcdef0123456789abcdef",
        started_at=_AT,
        started_after_s=0.01,
        took_s=took_ms / 1000,
        outcome=outcome,
    )


_AT: Final = datetime(2026, 11, 23, tzinfo=UTC)
_URL: Final = "https://shop.example/page"
_EVIDENCE: Final = HttpEvidence(
    request=SentRequest(method="GET", url=_URL, headers={"User-Agent": "Picket", "Accept": "*/*"}),
    response=SeenResponse(
        status_code=200,
        status_text="OK",
        http_version="1.1",
        headers={"content-type": "text/html; charset=utf-8", "cache-control": "no-store"},
        body="<!doctype html><title>Shop</title>" + "<p>tea and lamps</p>" * 20,
        body_bytes=434,
    ),
    hops=(Hop(url=_URL, status_code=200, remote_address="192.0.2.7", total_ms=20.0),),
    tls=TlsFacts(
        version="TLSv1.3", cipher="TLS_AES_256_GCM_SHA384", verified=True, days_to_expiry=40.5
    ),
    remote_address="192.0.2.7",
)
