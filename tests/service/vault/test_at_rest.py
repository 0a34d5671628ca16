"""No password of a check, a group or a proxy stands in the files of the service's database."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text, update

from service.app import running
from service.checks import actions
from service.checks import secrets as checks
from service.db.migrate import SCRIPTS
from service.db.sqlite import open_sqlite
from service.db.tables.checks import check_, check_group
from service.db.tables.locations import private_location
from service.groups import secrets as groups
from service.groups import store as group_store
from service.locations import secrets as locations
from service.locations import store as location_store
from service.settings import Settings
from service.vault.encryption import Vault
from tests.builders.check_bodies import check_body, with_request
from tests.builders.vaults import MASTER_KEY
from tests.servers.service import RunningService, serve_service

PASSWORD: Final = "s3cr3t-passw0rd"
"""Begins every secret of these tests."""
TYPES: Final = ["URL", "API", "TCP"]
LOCATION: Final = "/v1/private-locations"


def secret_request(mark: str) -> dict[str, Any]:
    """Everything that may be secret in a request."""
    locked = {"key": "x-token", "value": f"{PASSWORD} header {mark}", "locked": True}
    return {
        "headers": [{"key": "accept", "value": "text/html", "locked": False}, locked],
        "queryParameters": [{**locked, "value": f"{PASSWORD}-query-{mark}"}],
        "basicAuth": {"username": "shop", "password": f"{PASSWORD} basic {mark}"},
        "url": f"https://shop:{PASSWORD}-url-{mark}@shop.test/orders",
    }


def group_body(mark: str) -> dict[str, Any]:
    given = {**secret_request(mark), "headers": [{"key": "x-group", **_locked(mark)}]}
    return {"name": "Shop", "apiCheckDefaults": given}


def _locked(mark: str) -> dict[str, Any]:
    return {"value": f"{PASSWORD} group header {mark}", "locked": True}


def proxy(mark: str) -> str:
    return f"http://probe:{PASSWORD}/{mark}@proxy.test:3128"


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, database=folder / "service.db", master_keys=(MASTER_KEY,))


def telling(folder: Path) -> list[str]:
    """The files with a secret: the database, its log, whatever lies beside it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert "service.db" in {path.name for path in files}
    return [path.name for path in files if PASSWORD.encode() in path.read_bytes()]


async def made(service: RunningService, path: str, body: Any, *, key: str) -> Any:
    answer = await service.alice.post(path, body, headers={"idempotency-key": key})
    assert answer.status == 201, answer.body
    again = await service.alice.post(path, body, headers={"idempotency-key": key})
    assert again.body == answer.body
    return answer.body


async def written(service: RunningService) -> dict[str, Any]:
    """A group, checks in it and a location with a proxy, made and then changed; as they are."""
    alice = service.alice
    group = await made(service, "/v1/check-groups", group_body("old"), key="1")
    body = with_request("api", **secret_request("old")) | {"groupId": group["id"]}
    check = await made(service, "/v1/checks/api", body, key="2")
    url = secret_request("one")["url"]
    await made(service, "/v1/checks/url", with_request("url", url=url), key="3")
    place = {"name": "Cellar", "slugName": "cellar", "proxyUrl": proxy("old")}
    cellar = await made(service, LOCATION, place, key="4")
    body["request"] = {**body["request"], **secret_request("new")}
    answers = [
        await alice.put(f"/v1/check-groups/{group['id']}", group_body("new")),
        await alice.put(f"/v1/checks/api/{check['id']}", body),
        await alice.put(f"{LOCATION}/{cellar['id']}", {**place, "proxyUrl": proxy("new")}),
        await alice.put(
            f"{LOCATION}/{service.secrets.location_id}",
            {"name": "Default", "proxyUrl": proxy("default")},
        ),
    ]
    assert [answer.status for answer in answers] == [200] * 4
    return {"group": answers[0].body, "check": answers[1].body, "cellar": answers[2].body}


async def claimed(service: RunningService, claim_id: str = "1") -> list[dict[str, Any]]:
    await service.hello(checkTypes=TYPES)
    dealt = await service.claim(claim_id, checkTypes=TYPES)
    return sorted(dealt.body["jobs"], key=lambda job: str(job["spec"]["type"]))


async def test_no_password_stands_in_the_files_however_it_came_and_wherever_it_went(
    tmp_path: Path,
) -> None:
    async with serve_service(tmp_path, master_keys=(MASTER_KEY,)) as service:
        seen = await written(service)
        scheduled = await claimed(service)
        if len(scheduled) == 1:  # a tick came between the two checks
            scheduled += await claimed(service, "1b")
        await service.alice.post("/v1/check-sessions/trigger", {})
        wanted = await claimed(service, "2")
        assert telling(tmp_path) == []
    assert telling(tmp_path) == []
    assert [job["spec"]["type"] for job in scheduled] == ["API", "URL"]
    assert [job["runSource"] for job in wanted] == ["TRIGGER_API"] * 2
    for api, url in (scheduled, wanted):
        own, given = secret_request("new"), group_body("new")["apiCheckDefaults"]
        request = api["spec"]["request"]
        assert request["headers"] == [*own["headers"], *given["headers"]]
        assert request["queryParameters"] == own["queryParameters"]
        assert request["basicAuth"] == own["basicAuth"]
        assert request["url"] == own["url"]
        assert url["spec"]["request"]["url"] == secret_request("one")["url"]
        assert {job["proxyUrl"] for job in (api, url)} == {proxy("default")}
    assert seen["check"]["request"]["basicAuth"] == secret_request("new")["basicAuth"]
    assert seen["group"]["apiCheckDefaults"]["url"] == secret_request("new")["url"]
    assert seen["cellar"]["proxyUrl"] == proxy("new")


async def test_a_group_that_gives_a_password_later_leaves_it_nowhere(tmp_path: Path) -> None:
    """Its checks had no secret before, and their specs are written anew."""
    async with serve_service(tmp_path, master_keys=(MASTER_KEY,)) as service:
        alice = service.alice
        group = (await alice.post("/v1/check-groups", {"name": "Shop"})).body
        check = (await alice.post("/v1/checks/api", check_body("api", groupId=group["id"]))).body
        await alice.put(f"/v2/check-groups/{group['id']}", group_body("late"))
        runs = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
        [job] = await claimed(service)
        assert telling(tmp_path) == []
    given = secret_request("late")["basicAuth"]
    assert runs["request"]["basicAuth"] == job["spec"]["request"]["basicAuth"] == given


async def test_what_an_earlier_version_left_in_clear_is_sealed_by_the_next_start(
    tmp_path: Path,
) -> None:
    async with serve_service(tmp_path, master_keys=(MASTER_KEY,)) as service:
        before = await written(service)
        key = service.secrets
    await leave_in_clear(tmp_path)
    assert telling(tmp_path)
    async with running(settings(tmp_path)):
        assert await asyncio.to_thread(telling, tmp_path) == []
    async with serve_service(tmp_path, first_secrets=key, master_keys=(MASTER_KEY,)) as service:
        alice = service.alice
        [check, _] = sorted((await alice.get("/v1/checks")).body, key=lambda one: one["checkType"])
        assert check == before["check"]
        assert (await alice.get("/v1/check-groups")).body == [before["group"]]
        shown = (await alice.get(f"{LOCATION}/{before['cellar']['id']}")).body
        assert shown["proxyUrl"] == before["cellar"]["proxyUrl"]
        [api, _] = await claimed(service)
        assert api["spec"]["request"]["basicAuth"] == secret_request("new")["basicAuth"]
        assert api["proxyUrl"] == proxy("default")


def reach_0009(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, "0009")


def columns_of(file: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    rows = file.execute(
        "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
        " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
    )
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def indexes_of(file: sqlite3.Connection) -> set[str]:
    """The indexes that statements made, by their names."""
    rows = file.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    return {name for (name,) in rows}


async def leave_in_clear(folder: Path) -> None:
    """Make the database one of revision 0009, with what that version held."""
    database = open_sqlite(folder / "service.db")
    await database.write(_open_all)
    await database.close()
    before = open_sqlite(folder / "of-0009.db")
    await before.write(reach_0009)
    await before.close()
    file = sqlite3.connect(folder / "service.db")
    with closing(sqlite3.connect(folder / "of-0009.db")) as of_0009:
        then, now = columns_of(of_0009), columns_of(file)
        new_indexes = indexes_of(file) - indexes_of(of_0009)
    for table in now.keys() - then.keys():
        file.execute(f"DROP TABLE {table}")
    for index in new_indexes:
        file.execute(f"DROP INDEX IF EXISTS {index}")
    for table in then:
        for column in now[table] - then[table]:
            file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    file.execute("UPDATE alembic_version SET version_num = '0009'")
    file.commit()
    file.close()


def _open_all(connection: Connection) -> None:
    vault = Vault([MASTER_KEY])
    for row in actions.ENCRYPTED.rows(connection):
        named = {"account_id": row.account_id, "check_id": row.id}
        spec = checks.decrypt_spec(row.spec, vault, **named)
        stored = {"doc": row.doc, "applied": row.applied}
        whole = {**checks.decrypt_bodies(stored, row.secrets, vault, **named), "spec": spec}
        connection.execute(update(check_).where(check_.c.id == row.id).values(**whole))
    for group in groups.ENCRYPTED.rows(connection):
        doc = groups.decrypt(group_store.read(group), vault).doc
        connection.execute(update(check_group).where(check_group.c.id == group.id).values(doc=doc))
    for place in locations.ENCRYPTED.rows(connection):
        url = locations.decrypt(location_store.read(place), vault).proxy_url
        of_place = private_location.c.id == place.id
        connection.execute(update(private_location).where(of_place).values(proxy_url=url))


async def test_a_database_without_secrets_is_marked_as_such(tmp_path: Path) -> None:
    """Or each start would look through all of it again."""
    async with serve_service(tmp_path, master_keys=(MASTER_KEY,)) as service:
        await service.a_url_check()
        await service.alice.post("/v1/check-groups", {"name": "Shop"})
    await leave_in_clear(tmp_path)
    async with running(settings(tmp_path)):
        pass
    database = open_sqlite(tmp_path / "service.db")
    marked = "SELECT secrets FROM check_ UNION SELECT secrets FROM check_group"
    found = await database.read(lambda c: set(c.execute(text(marked)).scalars()))
    await database.close()
    assert found == {None}


@pytest.mark.parametrize("moved", ["secrets", "spec"])
async def test_secrets_of_a_check_open_for_no_other_one(tmp_path: Path, moved: str) -> None:
    async with serve_service(tmp_path, master_keys=(MASTER_KEY,)) as service:
        alice = service.alice
        body = with_request("api", **secret_request("own"))
        ids = [(await alice.post("/v1/checks/api", body)).body["id"] for _ in range(2)]
        file = sqlite3.connect(tmp_path / "service.db")
        file.execute(
            f"UPDATE check_ SET {moved} = (SELECT {moved} FROM check_ WHERE id = ?) WHERE id = ?",
            ids,
        )
        file.commit()
        file.close()
        jobs = await claimed(service)
        if moved == "secrets" and len(jobs) == 1:  # a tick came between the two checks
            jobs += await claimed(service, "2")
        dealt = [job["checkId"] for job in jobs]
        shown = await alice.get(f"/v1/checks/{ids[1]}")
        assert (await alice.put(f"/v1/checks/api/{ids[1]}", body)).status == 200
        assert (await alice.get(f"/v1/checks/{ids[1]}")).status == 200
    if moved == "spec":
        assert (dealt, shown.status) == ([ids[0]], 200)
    else:
        assert (sorted(dealt), shown.status) == (sorted(ids), 500)
        assert "cannot be read: it was changed, or belongs somewhere else." in shown.body["message"]
