"""Test sessions whose runs somebody follows, in a world without an API."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from contract.job import RunSource
from contract.wire import encode
from service.checks.model import UnstoredCheck
from service.db.ids import new_id
from service.jobs import actions as jobs
from service.sessions import model, store
from service.sessions.model import RunProgressed, Session, SessionStatus
from tests.builders.specs import a_url_spec
from tests.builders.world import World

SUITE = "suite-1"


def listen(world: World) -> list[RunProgressed]:
    """What is announced from now on."""
    heard: list[RunProgressed] = []
    world.database.listen(RunProgressed, heard.append)
    return heard


async def start_test(
    world: World,
    *names: str,
    suite_id: str | None = SUITE,
    retry_strategy: Mapping[str, Any] | None = None,
) -> str:
    """Queue a test session of URL checks of these names; its id."""

    def add(connection: Connection, now_ms: int) -> str:
        test = model.TestSession(
            id=new_id(now_ms),
            account_id=world.account_id,
            name="Shop",
            status=model.TestStatus.RUNNING,
            checks=len(names),
            pending=len(names),
            failed=0,
            started_ms=now_ms,
            stopped_ms=None,
            is_recorded=True,
            suite_id=suite_id,
            metadata={},
        )
        members = [_member(test, name, retry_strategy) for name in names]
        store.insert_test(connection, test, members)
        for session, check in members:
            wanted = jobs.WantedRuns(
                check_id=check.id,
                location_ids=[world.location_id],
                source=RunSource.TEST_RECORD,
                session_id=session.id,
            )
            jobs.add(connection, jobs.runs_of(wanted, check, now_ms=now_ms))
        return test.id

    return await world.change(add)


def _member(
    test: model.TestSession, name: str, retry_strategy: Mapping[str, Any] | None
) -> tuple[Session, UnstoredCheck]:
    check = UnstoredCheck(
        id=new_id(test.started_ms),
        type=CheckType.URL,
        lane=Lane.UPTIME,
        name=name,
        group_id=None,
        spec=encode(a_url_spec()),
        bundle_sha256=None,
    )
    session = Session(
        id=new_id(test.started_ms),
        check_id=check.id,
        check_type=check.type,
        name=name,
        locations=("cellar",),
        status=SessionStatus.STARTED,
        pending=1,
        started_ms=test.started_ms,
        stopped_ms=None,
        is_test=True,
        test=model.TestMember(
            test_session_id=test.id,
            logical_id=f"{name}-id",
            run_id=f"{name}-run",
            retry_strategy=retry_strategy,
        ),
    )
    return session, check
