"""A service's database with an account, locations and checks, and verbs to set them going."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row, insert, select

from contract.checks import CheckSpec, CheckType, Lane, check_type, lane
from contract.job import Job, RunSource
from contract.result import Failure, FailureKind, Outcome, Result, Status
from contract.wire import decode, encode
from service.agents.store import put_agent
from service.clock import Clock
from service.db.databases import open_database
from service.db.engine import Database
from service.db.ids import new_id
from service.db.tables.accounts import account
from service.db.tables.checks import check_, check_location, heartbeat, schedule
from service.db.tables.locations import private_location
from service.db.tables.metadata import metadata
from service.db.tables.runs import result
from service.jobs import actions as jobs
from service.jobs.claims import ClaimScope, assign_jobs
from service.jobs.model import Claimant
from service.results.ingest import Arrived, Verdict, take_results
from service.settings import PostgresUrl
from service.vault.encryption import Vault
from tests.builders.specs import SCHEDULED_FOR, a_heartbeat_spec, a_url_spec
from tests.builders.vaults import a_vault
from tests.fakes.clock import START_MS, FakeClock

T = TypeVar("T")

RETRY = {"retryStrategy": {"type": "FIXED", "baseBackoffSeconds": 10, "maxRetries": 2}}
UPTIME_TYPES = frozenset(
    {CheckType.URL, CheckType.API, CheckType.TCP, CheckType.DNS, CheckType.ICMP}
    | {CheckType.HEARTBEAT}
)


def a_claimant(claim_id: str = "claim-1", **changes: Any) -> Claimant:
    fields: dict[str, Any] = {
        "claim_id": claim_id,
        "agent_id": "agent-1",
        "slots": {Lane.UPTIME: 10},
        "check_types": UPTIME_TYPES,
        "repeated": False,
    }
    return Claimant(**{**fields, **changes})


def an_outcome(status: Status = Status.PASSED, **changes: Any) -> Outcome:
    if status in {Status.FAILED, Status.TIMED_OUT}:
        changes.setdefault("failure", Failure(kind=FailureKind.CONNECT, message="refused"))
    return Outcome(**{"status": status, "response_time_ms": 12.5, **changes})


def a_result(job: Job, status: Status = Status.PASSED, **changes: Any) -> Result:
    fields: dict[str, Any] = {
        "job_id": job.job_id,
        "fence": job.fence,
        "run_id": job.run_id,
        "check_id": job.check_id,
        "check_type": check_type(job.spec),
        "agent_id": "agent-1",
        "attempt": job.attempt,
        "started_at": SCHEDULED_FOR,
        "started_after_s": 0.0,
        "took_s": 0.0,
        "outcome": an_outcome(status),
    }
    return Result(**{**fields, **changes})


@dataclass(slots=True)
class World:
    """Made by `a_world`."""

    database: Database
    account_id: str
    location_id: str
    """The first location, `cellar`."""
    clock: Clock = field(default_factory=FakeClock)
    vault: Vault = field(default_factory=a_vault)

    @property
    def time(self) -> FakeClock:
        assert isinstance(self.clock, FakeClock)
        return self.clock

    async def change(self, change: Callable[[Connection, int], T]) -> T:
        """Run a change at the clock's time."""
        return await self.database.write(lambda c: change(c, self.clock.now_ms(c)))

    async def rows(self, statement: Any) -> list[Row[Any]]:
        return await self.database.read(lambda c: list(c.execute(statement)))

    def table(self, location: str | None = None) -> ClaimScope:
        """Where jobs are dealt: at the first location, unless it is another."""
        return ClaimScope(location or self.location_id, self.vault)

    async def location(self, slug: str) -> str:
        return await self.change(lambda c, now: _add_location(c, self.account_id, slug, now))

    async def check(
        self,
        spec: CheckSpec | None = None,
        *,
        locations: tuple[str, ...] | None = None,
        doc: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> str:
        """A check at the first location; no retries unless `doc` asks for them."""
        spec = spec or a_url_spec()
        places = locations if locations is not None else (self.location_id,)

        def add(connection: Connection, now_ms: int) -> str:
            check_id = new_id(now_ms)
            row = {
                "id": check_id,
                "account_id": self.account_id,
                "type": check_type(spec).value,
                "lane": lane(spec).value,
                "name": "Front page",
                "activated": True,
                "muted": False,
                "frequency": 10,
                "frequency_offset": 1,
                "run_parallel": False,
                "doc": dict(doc or {}),
                "spec": encode(spec),
                "version": 1,
                "created_ms": now_ms,
                **columns,
            }
            connection.execute(insert(check_), row)
            for position, location_id in enumerate(places):
                connection.execute(
                    insert(check_location),
                    {"check_id": check_id, "location_id": location_id, "position": position},
                )
            return check_id

        return await self.change(add)

    async def heartbeat(self, token: str = "nightly", **spec: Any) -> str:
        check_id = await self.check(a_heartbeat_spec(ping_token=token, **spec))
        row = {"check_id": check_id, "token": token}
        await self.database.write(lambda c: c.execute(insert(heartbeat), row))
        return check_id

    async def queue(self, check_id: str, *locations: str, session_id: str | None = None) -> None:
        """Queue a run, as a person's wish."""
        wanted = jobs.WantedRuns(
            check_id=check_id,
            location_ids=locations or (self.location_id,),
            source=RunSource.SCHEDULE_NOW,
            session_id=session_id,
        )
        await self.change(lambda c, now: jobs.enqueue(c, wanted, now_ms=now))

    async def claim(
        self, claim_id: str = "claim-1", *, location: str | None = None, **changes: Any
    ) -> list[Job]:
        """What a claim is dealt at once."""
        claimant = a_claimant(claim_id, **changes)
        table = self.table(location)
        dealt = await self.change(lambda c, now: assign_jobs(c, table, [claimant], now_ms=now))
        return [decode(job, Job) for job in dealt.jobs[0]]

    async def submit(self, *results: Result, location: str | None = None) -> list[Verdict]:
        arrived = [Arrived(one, encode(one), int(one.job_id)) for one in results]
        place = location or self.location_id
        return await self.change(
            lambda c, now: take_results(c, arrived, location_id=place, now_ms=now)
        )

    async def results(self, check_id: str) -> list[Row[Any]]:
        """Stored results of a check, oldest first."""
        return await self.rows(
            select(result).where(result.c.check_id == check_id).order_by(result.c.created_ms)
        )

    async def schedule_of(self, check_id: str) -> Row[Any] | None:
        rows = await self.rows(select(schedule).where(schedule.c.check_id == check_id))
        return rows[0] if rows else None

    async def agent_seen(
        self,
        *,
        location: str | None = None,
        agent_id: str = "agent-1",
        key_id: str | None = "key-1",
        check_types: Iterable[CheckType] = UPTIME_TYPES,
    ) -> None:
        """An agent said hello now."""
        row = {
            "location_id": location or self.location_id,
            "id": agent_id,
            "version": "1.0.0",
            "platform": "linux-x86_64",
            "runtimes": {},
            "check_types": [one.value for one in check_types],
            "slots": {},
            "key_id": key_id,
        }

        def add(connection: Connection, now_ms: int) -> None:
            times = {"started_ms": now_ms, "last_seen_ms": now_ms}
            put_agent(connection, {**row, **times})

        await self.change(add)


@asynccontextmanager
async def a_world(directory: Path, *, postgresql_url: str | None = None) -> AsyncIterator[World]:
    """An empty database with one account and one location, on a clock that stands still.

    `postgresql_url`: one that has the newest schema. None: a SQLite file in the folder.
    """
    database = open_database(
        PostgresUrl(postgresql_url) if postgresql_url else directory / "world.db"
    )
    clock = FakeClock()
    try:
        if postgresql_url is None:
            await database.write(metadata.create_all)
        account_id, location_id = await database.write(lambda c: _begin(c, clock.now))
        yield World(database, account_id, location_id, clock)
    finally:
        await database.close()


def new_account(connection: Connection, now_ms: int = START_MS) -> str:
    """An account without anything; its id."""
    account_id = new_id(now_ms)
    row = {"id": account_id, "name": "Alice", "created_ms": now_ms}
    connection.execute(insert(account), row)
    return account_id


def _begin(connection: Connection, now_ms: int) -> tuple[str, str]:
    account_id = new_account(connection, now_ms)
    return account_id, _add_location(connection, account_id, "cellar", now_ms)


def _add_location(connection: Connection, account_id: str, slug: str, now_ms: int) -> str:
    location_id = new_id(now_ms)
    row = {
        "id": location_id,
        "account_id": account_id,
        "name": slug.capitalize(),
        "slug_name": slug,
        "icon": "location",
        "created_ms": now_ms,
    }
    connection.execute(insert(private_location), row)
    return location_id


def as_json(value: Any) -> Any:
    """A message as a client without our types would write it."""
    return msgspec.json.decode(encode(value))


async def a_strangers_location(world: World) -> str:
    """A location of another account on the same service."""
    return await world.change(lambda c, now: _begin(c, now)[1])


async def kinds_of(world: World, check_id: str) -> list[tuple[str, str, int]]:
    """Of each stored result its kind, its status and its attempt, oldest first."""
    return [(row.result_type, row.status, row.attempt) for row in await world.results(check_id)]
