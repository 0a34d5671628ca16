from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service.accounts.keys import digest_key
from service.accounts.model import Role
from service.agents.location_keys import LocationKeys
from service.agents.model import Opened
from service.audit import audit
from service.db.tables.locations import agent, location_outage, location_sample, private_location
from service.locations.views import CONNECTED_MS, version_order
from service.vault.texts import HIDDEN
from tests.builders.check_bodies import check_body
from tests.servers.public_api import PEPPER, ApiUser, PublicApi

PATH = "/v1/private-locations"
CELLAR = {"name": "Cellar", "slugName": "cellar", "proxyUrl": "http://u:p@proxy.test:3128"}


async def made(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post(PATH, {**CELLAR, **fields})
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


async def test_known_regions_are_listed_without_a_key(api: PublicApi) -> None:
    async with api.http.get(f"{api.url}/v1/locations") as answer:
        assert answer.status == 200
        regions = await answer.json()
    assert len(regions) == 22
    assert {"region": "eu-west-1", "name": "Ireland"} in regions


async def test_a_new_location_shows_its_key_once(alice: ApiUser) -> None:
    location = await made(alice)
    (key,) = location["keys"]
    assert key["rawKey"].startswith("pl_")
    assert key["maskedKey"] == f"pl_****{key['rawKey'][-4:]}"
    again = (await alice.get(f"{PATH}/{location['id']}")).body
    assert "rawKey" not in again["keys"][0]
    assert key["rawKey"] not in str((await alice.get(PATH)).body)
    assert again["icon"] == "location"
    assert again["proxyUrl"] == CELLAR["proxyUrl"]
    assert (again["lastSeen"], again["agentCount"], again["updated_at"]) == (None, 0, None)


async def test_a_slug_is_an_accounts_own(alice: ApiUser, charlie: ApiUser) -> None:
    await made(alice)
    assert (await alice.post(PATH, CELLAR)).status == 409
    await made(charlie)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slugName", "Cellar"),
        ("slugName", "a b"),
        ("slugName", "-a"),
        ("slugName", ""),
        ("name", ""),
        ("proxyUrl", "proxy:3128"),
        ("proxyUrl", "http://"),
        ("proxyUrl", "http://u:p@:3128"),
        ("proxyUrl", "http://proxy.test:99999"),
        ("proxyUrl", "http://proxy.test:0"),
        ("proxyUrl", "http://proxy.test:door"),
        ("proxyUrl", "http://[::1"),
    ],
)
async def test_a_wrong_location_is_refused_by_its_field(
    alice: ApiUser, field: str, value: str
) -> None:
    answer = await alice.post(PATH, {**CELLAR, field: value})
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "payload", "keys": [field]}


@pytest.mark.parametrize(
    "address",
    ["http://proxy.test", "socks5://u:p@[::1]:1080", "HTTPS://proxy.test:65535", "{{PROXY}}"],
)
async def test_a_proxy_is_taken_by_every_spelling_of_its_address(
    alice: ApiUser, address: str
) -> None:
    assert (await made(alice, proxyUrl=address))["proxyUrl"] == address


async def test_a_slug_is_described_in_words(api: PublicApi, alice: ApiUser) -> None:
    answer = await alice.post(PATH, {**CELLAR, "slugName": "My Cellar"})
    assert answer.body["message"] == (
        '"slugName" is My Cellar; use lower-case letters a to z, digits and single hyphens, as in'
        " cellar-2."
    )
    assert (await alice.post(PATH, {**CELLAR, "slugName": "cellar\n"})).status == 400
    schema = api.app.openapi()["components"]["schemas"]["LocationWrite"]["properties"]["slugName"]
    assert schema["pattern"] == "^[a-z0-9]+(-[a-z0-9]+)*$"


async def test_a_location_can_be_renamed_but_keeps_its_slug(alice: ApiUser) -> None:
    location = await made(alice)
    body = {"name": "Attic", "icon": "home", "slugName": "attic", "proxyUrl": ""}
    answer = await alice.put(f"{PATH}/{location['id']}", body)
    assert answer.status == 200
    assert (answer.body["name"], answer.body["slugName"]) == ("Attic", "cellar")
    assert (answer.body["icon"], answer.body["proxyUrl"]) == ("home", None)
    assert answer.body["updated_at"] is not None


async def test_a_location_has_two_keys_at_most(alice: ApiUser) -> None:
    location = await made(alice)
    keys = f"{PATH}/{location['id']}/keys"
    second = await alice.post(keys)
    assert second.status == 201
    assert second.body["rawKey"].startswith("pl_")
    third = await alice.post(keys)
    assert (third.status, third.body["error"]) == (409, "Conflict")
    assert (await alice.delete(f"{keys}/{location['keys'][0]['id']}")).status == 204
    assert (await alice.post(keys)).status == 201


async def test_an_ended_key_opens_nothing_from_then_on(api: PublicApi, alice: ApiUser) -> None:
    location = await made(alice)
    (key,) = location["keys"]
    keys = LocationKeys(api.database, pepper=PEPPER, monotonic=lambda: 0.0)
    assert await keys.opened_with(digest_key(key["rawKey"])) == Opened(location["id"], key["id"])
    path = f"{PATH}/{location['id']}/keys/{key['id']}"
    assert (await alice.delete(path)).status == 204
    assert await keys.opened_with(digest_key(key["rawKey"])) is None
    assert (await alice.delete(path)).status == 404


async def test_a_location_in_use_stays(alice: ApiUser) -> None:
    location = await made(alice)
    check = await alice.post("/v1/checks/url", check_body(privateLocations=["cellar"]))
    refused = await alice.delete(f"{PATH}/{location['id']}")
    assert (refused.status, refused.body["error"]) == (409, "Conflict")
    assert "Home" in refused.body["message"]
    await alice.delete(f"/v1/checks/{check.body['id']}")
    assert (await alice.delete(f"{PATH}/{location['id']}")).status == 204
    assert (await alice.get(f"{PATH}/{location['id']}")).status == 404


async def test_agents_that_are_connected_are_counted_by_version(
    api: PublicApi, alice: ApiUser
) -> None:
    location = await made(alice)
    now_ms = await api.database.read(api.backend.clock.now_ms)

    why = [{"type": "ICMP", "cause": "no ping", "remedy": "allow it", "only_with_scripts": False}]

    def row(name: str, version: str, age_ms: int) -> dict[str, Any]:
        return {
            "location_id": location["id"],
            "id": name,
            "version": version,
            "platform": "linux-x86_64",
            "runtimes": {},
            "check_types": ["URL"],
            "unavailable": why,
            "slots": {"uptime": 1},
            "started_ms": now_ms - 900_000,
            "last_seen_ms": now_ms - age_ms,
        }

    rows = [
        row("a", "0.10.0", 0),
        row("b", "0.9.1", 1000),
        row("c", "0.10.0", 1000),
        row("gone", "0.1.0", CONNECTED_MS + 60_000),
    ]
    await api.database.write(lambda c: c.execute(insert(agent), rows) and None)
    plain = (await alice.get(PATH)).body[1]
    assert plain["agentCount"] == 3
    assert plain["lastSeen"] is not None
    assert "runningAgents" not in plain
    seen = (await alice.get(f"{PATH}?versions=true")).body[1]
    assert seen["minAgentVersion"] == "0.9.1"
    assert [(one["version"], one["count"]) for one in seen["runningAgents"]] == [
        ("0.9.1", 1),
        ("0.10.0", 2),
    ]
    agents = seen["runningAgents"][1]["agents"]
    assert [one["id"] for one in agents] == ["a", "c"]
    assert agents[0]["checkTypes"] == ["URL"]
    (lost,) = agents[0]["unavailable"]
    assert lost.pop("onlyWithScripts") is False
    assert lost == {"type": "ICMP", "cause": "no ping", "remedy": "allow it"}
    assert (await alice.get(PATH)).body[0]["agentCount"] == 0


async def test_others_locations_are_not_there(alice: ApiUser, charlie: ApiUser) -> None:
    location = await made(alice)
    path = f"{PATH}/{location['id']}"
    key = f"{path}/keys/{location['keys'][0]['id']}"
    assert (await charlie.get(path)).status == 404
    assert (await charlie.put(path, {"name": "Mine"})).status == 404
    assert (await charlie.delete(path)).status == 404
    assert (await charlie.post(f"{path}/keys")).status == 404
    assert (await charlie.delete(key)).status == 404
    assert [one["slugName"] for one in (await charlie.get(PATH)).body] == ["default"]


def test_versions_count_by_their_numbers() -> None:
    versions = ["1.10.0", "1.9.0", "0.1", "1.9.0-rc1", "1.10.0"]
    ordered = ["0.1", "1.9.0", "1.9.0-rc1", "1.10.0", "1.10.0"]
    assert sorted(versions, key=version_order) == ordered


async def test_runs_at_a_location_that_goes_are_missed_under_its_name(
    api: PublicApi, alice: ApiUser
) -> None:
    made = (await alice.post("/v1/private-locations", {"name": "Attic", "slugName": "attic"})).body
    body = check_body(privateLocations=["attic"], activated=True)
    check = (await alice.post("/v1/checks/url", body)).body
    await alice.post("/v1/check-sessions/trigger", {"target": {"checkId": [check["id"]]}})
    await alice.put(f"/v1/checks/url/{check['id']}", {**body, "privateLocations": ["default"]})
    gone = await alice.delete(f"/v1/private-locations/{made['id']}")
    assert gone.status == 204
    [missed] = (await alice.get(f"/v1/check-results/{check['id']}")).body
    assert (missed["runLocation"], missed["cause"]) == ("attic", "no_agent")


async def sampled(api: PublicApi, location_id: str, *samples: tuple[int, int, int]) -> None:
    rows = [
        {"location_id": location_id, "at_ms": at_ms, "queue_size": size, "oldest_wait_ms": wait_ms}
        for at_ms, size, wait_ms in samples
    ]
    await api.database.write(lambda c: c.execute(insert(location_sample), rows) and None)


async def test_a_locations_queue_is_shown_as_parallel_arrays(
    api: PublicApi, alice: ApiUser
) -> None:
    location = await made(alice)
    minute = await api.database.read(api.backend.clock.now_ms) // 60_000 * 60
    await sampled(
        api,
        location["id"],
        ((minute - 180) * 1000, 9, 9),
        ((minute - 120) * 1000, 2, 61_500),
        ((minute - 60) * 1000, 0, 0),
    )
    path = f"{PATH}/{location['id']}/metrics?from={minute - 120}&to={minute}"
    answer = await alice.get(path)
    assert answer.status == 200
    assert list(answer.body) == ["timestamps", "queueSize", "oldestScheduledCheckRun"]
    assert (answer.body["queueSize"], answer.body["oldestScheduledCheckRun"]) == ([2, 0], [61.5, 0])
    first = datetime.fromisoformat(answer.body["timestamps"][0])
    assert first.timestamp() == minute - 120


@pytest.mark.parametrize(
    "window", ["", "from=1&to=2", "from={now}", "from={now}&to={now}", "from=x&to={now}"]
)
async def test_a_window_that_is_none_is_refused(alice: ApiUser, window: str) -> None:
    location = await made(alice)
    now = int(datetime.now(UTC).timestamp())
    answer = await alice.get(f"{PATH}/{location['id']}/metrics?{window.format(now=now)}")
    assert answer.status == 400
    assert answer.body["validation"]["source"] == "query"


async def test_the_queue_of_others_is_not_there(alice: ApiUser, charlie: ApiUser) -> None:
    location = await made(alice)
    now = int(datetime.now(UTC).timestamp())
    path = f"{PATH}/{location['id']}/metrics?from={now - 60}&to={now}"
    assert (await charlie.get(path)).status == 404


async def test_a_location_says_whether_it_is_available(api: PublicApi, alice: ApiUser) -> None:
    location = await made(alice)
    assert (location["available"], location["unavailableSince"]) == (True, None)
    row = {"location_id": location["id"], "since_ms": 1_795_255_200_000}
    await api.database.write(lambda c: c.execute(insert(location_outage), row) and None)
    [_, seen] = (await alice.get(PATH)).body
    assert (seen["available"], seen["unavailableSince"]) == (False, "2026-11-21T10:00:00.000Z")


async def test_credentials_of_a_proxy_are_for_those_who_may_write(
    api: PublicApi, alice: ApiUser
) -> None:
    made = (await alice.post(PATH, CELLAR)).body
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    listed, path = (await reader.get(PATH)).body, f"{PATH}/{made['id']}"
    assert {one["proxyUrl"] for one in listed} == {None, f"http://{HIDDEN}@proxy.test:3128"}
    assert (await reader.get(path)).body["proxyUrl"] == f"http://{HIDDEN}@proxy.test:3128"
    assert (await alice.get(path)).body["proxyUrl"] == CELLAR["proxyUrl"]


async def test_any_sign_in_the_password_of_a_proxy_is_part_of_it(
    api: PublicApi, alice: ApiUser
) -> None:
    """Nobody has to have written it as a URL wants it."""
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    for order, password in enumerate(("a/b", "a@b", "a?b#c", "{{{PROXY_PASSWORD}}}")):
        address = f"http://probe:{password}@proxy.test:3128"
        location = await made(alice, slugName=f"cellar-{order}", proxyUrl=address)
        path = f"{PATH}/{location['id']}"
        assert location["proxyUrl"] == (await alice.get(path)).body["proxyUrl"] == address
        assert (await reader.get(path)).body["proxyUrl"] == f"http://{HIDDEN}@proxy.test:3128"


async def test_a_proxy_without_credentials_is_stored_as_it_is(
    api: PublicApi, alice: ApiUser
) -> None:
    await made(alice, proxyUrl="http://proxy.test:3128")
    query = select(private_location).where(private_location.c.slug_name == "cellar")
    row = await api.database.read(lambda c: c.execute(query).one())
    assert (row.proxy_url, row.sealed_proxy_url) == ("http://proxy.test:3128", None)


async def test_a_proxy_that_cannot_be_read_any_more_can_be_set_anew(
    api: PublicApi, alice: ApiUser
) -> None:
    location = await made(alice)
    path, body = f"{PATH}/{location['id']}", {"name": "Cellar", "proxyUrl": CELLAR["proxyUrl"]}
    await alice.put(path, body)
    lost = update(private_location).where(private_location.c.id == location["id"])
    await api.database.write(lambda c: c.execute(lost.values(sealed_proxy_url=b"\1 not sealed")))
    answer = await alice.get(path)
    assert answer.status == 500
    assert "The stored proxyUrl of the private location cellar cannot" in answer.body["message"]
    assert (await alice.put(path, body)).body["proxyUrl"] == CELLAR["proxyUrl"]
    again, same = await api.database.read(lambda c: audit.list_newest(c, limit=2))
    assert (same.fields, again.fields) == ((), ("proxyUrl",))
