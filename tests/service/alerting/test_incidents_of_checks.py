"""A check's `triggerIncident`: an outage has one incident, whatever its alerts."""

from typing import Any

from sqlalchemy import Connection, delete, update

from service.db.ids import new_id
from service.db.tables.checks import check_
from service.db.tables.status_pages import status_incident, status_service
from service.incidents import actions as incidents
from service.incidents.model import Incident, IncidentStatus
from service.status_pages import store
from service.status_pages.actions import resolve_incident
from tests.builders.alerting import Alerting, a_check, by_runs
from tests.builders.world import World


async def a_service(world: World) -> str:
    """A service of status pages."""

    def change(connection: Connection, now_ms: int) -> str:
        row = {"id": new_id(now_ms), "account_id": world.account_id, "name": "Checkout"}
        store.add_service(connection, {**row, "created_ms": now_ms, "updated_ms": None})
        return row["id"]

    return await world.change(change)


async def a_triggering_check(world: World, service_id: str, **terms: Any) -> Alerting:
    """A check whose outages open incidents."""
    trigger = {
        "serviceId": service_id,
        "severity": "MAJOR",
        "name": "Checkout is down",
        "description": "Nobody can pay.",
        "notifySubscribers": False,
    }
    return await a_check(world, {**by_runs(2), "triggerIncident": trigger}, **terms)


async def updates(world: World) -> list[list[str]]:
    """What was said of each incident, the oldest first."""
    found = await listed(world)
    return [[one.status.value for one in incident.updates] for incident in reversed(found)]


async def listed(world: World) -> tuple[Incident, ...]:
    return await world.database.read(
        lambda c: incidents.list_page(c, world.account_id, limit=100, after=None)
    )


OPENED = IncidentStatus.INVESTIGATING.value
CLOSED = IncidentStatus.RESOLVED.value


async def test_an_alert_opens_an_incident_and_the_recovery_resolves_it(world: World) -> None:
    check = await a_triggering_check(world, await a_service(world))
    await check.run("F")
    assert await updates(world) == []
    await check.runs("F")
    assert await updates(world) == [[OPENED]]
    await check.runs("FFDF")
    assert await updates(world) == [[OPENED]]
    await check.runs("P")
    assert await updates(world) == [[OPENED, CLOSED]]
    (incident,) = await listed(world)
    assert (incident.name, incident.check_id) == ("Checkout is down", check.check_id)
    await check.runs("FFP")
    assert await updates(world) == [[OPENED, CLOSED], [OPENED, CLOSED]]


async def test_checks_that_share_a_service_have_an_incident_each(world: World) -> None:
    service = await a_service(world)
    one, other = [await a_triggering_check(world, service) for _ in "12"]
    await one.runs("FF")
    await other.runs("FF")
    await one.runs("P")
    assert await updates(world) == [[OPENED, CLOSED], [OPENED]]


async def test_a_check_that_is_slow_opens_no_incident_until_it_fails(world: World) -> None:
    check = await a_triggering_check(world, await a_service(world))
    await check.runs("DDD")
    assert await updates(world) == []
    await check.runs("F")
    assert await updates(world) == [[OPENED]]


async def test_a_muted_check_opens_no_incident_and_resolves_the_one_that_it_has(
    world: World,
) -> None:
    service = await a_service(world)
    muted = await a_triggering_check(world, service, muted=True)
    await muted.runs("FFP")
    assert await updates(world) == []
    check = await a_triggering_check(world, service)
    await check.runs("FF")
    await world.database.write(lambda c: c.execute(update(check_).values(muted=True)))
    await check.runs("P")
    assert await updates(world) == [[OPENED, CLOSED]]


async def test_what_a_person_has_resolved_stays_as_it_is(world: World) -> None:
    check = await a_triggering_check(world, await a_service(world))
    await check.runs("FF")
    (incident,) = await listed(world)
    await world.change(
        lambda c, now: resolve_incident(c, world.account_id, incident.id, now_ms=now)
    )
    await check.runs("FFP")
    assert await updates(world) == [[OPENED, CLOSED]]


async def test_an_incident_or_a_service_that_is_gone_stops_no_alert(world: World) -> None:
    check = await a_triggering_check(world, await a_service(world))
    await check.runs("FF")
    await world.database.write(lambda c: c.execute(delete(status_incident)))
    await check.runs("P")
    await world.database.write(lambda c: c.execute(delete(status_service)))
    await check.runs("FFP")
    assert await updates(world) == []
    assert await check.types() == ["FAILURE_REMAIN", "RECOVERY"] * 2
