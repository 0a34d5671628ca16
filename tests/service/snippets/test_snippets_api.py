from typing import Any

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from contract.checks import ApiSpec, BrowserSpec, Dependency
from contract.requests import BasicAuth
from contract.scripts import MAX_SCRIPT_BYTES
from contract.wire import decode
from service.checks.secrets import decrypt_spec, is_encrypted
from service.db.tables.checks import check_
from tests.builders.check_bodies import check_body, script_body
from tests.builders.groups import group_body
from tests.servers.public_api import ApiUser, PublicApi


async def a_snippet(user: ApiUser, name: str = "sign", script: str = "module.exports = 1") -> int:
    answer = await user.post("/v1/snippets", {"name": name, "script": script})
    assert answer.status == 201, answer.body
    return int(answer.body["id"])


async def spec_of(api: PublicApi, check: dict[str, Any], kind: Any) -> Any:
    query = select(check_.c.spec).where(check_.c.id == check["id"])
    return decode(await api.database.read(lambda c: c.execute(query).scalar_one()), kind)


async def made(user: ApiUser, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{path}", body)
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def test_a_snippet_is_made_read_changed_and_deleted(alice: ApiUser) -> None:
    answer = await alice.post("/v1/snippets", {"name": "sign", "script": "1"})
    assert answer.status == 201
    first = answer.body
    assert first == {
        "id": first["id"],
        "name": "sign",
        "script": "1",
        "created_at": first["created_at"],
        "updated_at": None,
    }
    path = f"/v1/snippets/{first['id']}"
    assert (await alice.get(path)).body == first
    changed = await alice.put(path, {"name": "token", "script": "2"})
    assert changed.status == 200
    assert (changed.body["name"], changed.body["script"]) == ("token", "2")
    assert changed.body["updated_at"] is not None
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    assert (await alice.delete(path)).status == 404


async def test_snippets_are_listed_in_pages_oldest_first(alice: ApiUser) -> None:
    for order in range(12):
        await a_snippet(alice, f"s{order}")
    first, second = (
        await alice.get("/v1/snippets"),
        await alice.get("/v1/snippets?limit=5&page=3"),
    )
    assert [one["name"] for one in first.body] == [f"s{order}" for order in range(10)]
    assert [one["name"] for one in second.body] == ["s10", "s11"]
    for query in ("limit=0", "limit=101", "page=x"):
        assert (await alice.get(f"/v1/snippets?{query}")).status == 400


async def test_a_number_never_comes_again(alice: ApiUser) -> None:
    first = await a_snippet(alice)
    await alice.delete(f"/v1/snippets/{first}")
    assert await a_snippet(alice) > first


async def test_charlie_sees_nothing_of_alices_snippets(alice: ApiUser, charlie: ApiUser) -> None:
    path = f"/v1/snippets/{await a_snippet(alice)}"
    assert (await charlie.get("/v1/snippets")).body == []
    assert (await charlie.get(path)).status == 404
    assert (await charlie.put(path, {"name": "x", "script": "1"})).status == 404
    assert (await charlie.delete(path)).status == 404
    assert (await charlie.post("/v1/snippets", {"name": "sign", "script": "1"})).status == 201


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"script": "1"}, '"name" is missing.'),
        ({"name": "a/b", "script": "1"}, '"name" must be a file name'),
        ({"name": "a.js", "script": "1"}, '"name" must not end in .js'),
        ({"name": "a", "script": " "}, '"script" is empty.'),
        (
            {"name": "a", "script": "x" * (MAX_SCRIPT_BYTES + 1)},
            '"script" has 524289 bytes; use at most 524288.',
        ),
    ],
)
async def test_what_cannot_be_a_snippet_is_refused_in_a_sentence(
    alice: ApiUser, body: dict[str, Any], said: str
) -> None:
    answer = await alice.post("/v1/snippets", body)
    assert answer.status == 400
    assert answer.body["message"].startswith(said)


async def test_two_snippets_of_one_name_would_be_one_file(alice: ApiUser) -> None:
    await a_snippet(alice)
    other = await a_snippet(alice, "other")
    again = await alice.post("/v1/snippets", {"name": "sign", "script": "2"})
    assert (again.status, again.body["message"]) == (
        409,
        "A snippet sign already exists; use another name.",
    )
    assert (await alice.put(f"/v1/snippets/{other}", {"name": "sign", "script": "2"})).status == 409
    assert (
        await alice.put(f"/v1/snippets/{other}", {"name": "other", "script": "2"})
    ).status == 200


async def test_a_phase_runs_the_snippet_that_it_names(api: PublicApi, alice: ApiUser) -> None:
    setup, teardown = await a_snippet(alice, "before", "1"), await a_snippet(alice, "after", "2")
    body = check_body("api", setupSnippetId=setup, tearDownSnippetId=teardown)
    check = await made(alice, "api", body)
    assert (check["setupSnippetId"], check["localSetupScript"]) == (setup, None)
    spec: ApiSpec = await spec_of(api, check, ApiSpec)
    assert (spec.setup_script, spec.teardown_script) == ("1", "2")
    lane = await api.database.read(lambda c: c.execute(select(check_.c.lane)).scalar_one())
    assert lane == "main"


async def test_a_changed_snippet_is_in_the_next_run(api: PublicApi, alice: ApiUser) -> None:
    snippet = await a_snippet(alice, "before", "1")
    check = await made(alice, "api", check_body("api", setupSnippetId=snippet))
    await alice.put(f"/v1/snippets/{snippet}", {"name": "before", "script": "2"})
    spec: ApiSpec = await spec_of(api, check, ApiSpec)
    assert spec.setup_script == "2"
    assert (await alice.get(f"/v1/checks/{check['id']}")).body == check


async def test_a_phase_cannot_name_a_snippet_that_is_not_there(
    alice: ApiUser, charlie: ApiUser
) -> None:
    foreign = await a_snippet(charlie)
    answer = await alice.post("/v1/checks/api", check_body("api", setupSnippetId=foreign))
    assert answer.status == 400
    assert answer.body["message"] == (
        f'"setupSnippetId" is {foreign}, and there is no snippet with this id.'
    )


async def test_a_snippet_that_is_a_phase_stays(alice: ApiUser) -> None:
    snippet = await a_snippet(alice)
    check = await made(alice, "api", check_body("api", tearDownSnippetId=snippet))
    answer = await alice.delete(f"/v1/snippets/{snippet}")
    assert answer.status == 409
    assert answer.body["message"] == (
        "The snippet sign is the setup or teardown of 1 checks (Orders);"
        " change or delete them first."
    )
    await alice.delete(f"/v1/checks/{check['id']}")
    assert (await alice.delete(f"/v1/snippets/{snippet}")).status == 204


async def test_scripts_get_the_snippets_that_they_import_and_no_others(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    await a_snippet(charlie, "sign", "'charlies'")
    await a_snippet(alice, "sign", "require('./token')")
    await a_snippet(alice, "token", "'t'")
    await a_snippet(alice, "unused", "'u'")
    body = script_body("browser", script="require('./snippets/sign'); require('./snippets/none')")
    spec: BrowserSpec = await spec_of(api, await made(alice, "browser", body), BrowserSpec)
    assert spec.snippets == (
        Dependency(path="snippets/sign.js", content="require('./token')"),
        Dependency(path="snippets/token.js", content="'t'"),
    )


async def test_a_snippet_that_comes_later_is_found_by_scripts_that_were_there(
    api: PublicApi, alice: ApiUser
) -> None:
    body = script_body("browser", script="require('./snippets/sign')")
    check = await made(alice, "browser", body)
    assert (await spec_of(api, check, BrowserSpec)).snippets == ()
    snippet = await a_snippet(alice, "sign", "1")
    assert len((await spec_of(api, check, BrowserSpec)).snippets) == 1
    await alice.delete(f"/v1/snippets/{snippet}")
    assert (await spec_of(api, check, BrowserSpec)).snippets == ()


async def test_snippets_that_import_each_other_come_once(api: PublicApi, alice: ApiUser) -> None:
    await a_snippet(alice, "a", "require('./b')")
    await a_snippet(alice, "b", "require('./a')")
    body = script_body("multistep", dependencies=[{"path": "x.js", "content": "'./snippets/a'"}])
    check = await made(alice, "multistep", body)
    spec: BrowserSpec = await spec_of(api, check, Any)
    assert len(spec["snippets"]) == 2  # type: ignore[index]  # read without its type


async def test_more_snippets_than_a_job_can_carry_are_refused(alice: ApiUser) -> None:
    for name, size in (("a", MAX_SCRIPT_BYTES), ("b", MAX_SCRIPT_BYTES), ("c", 1)):
        await a_snippet(alice, name, "x" * size)
    script = "require('./snippets/a'); require('./snippets/b')"
    made = await alice.post("/v1/checks/browser", script_body("browser", script=script))
    assert made.status == 201, made.body
    script += "; require('./snippets/c')"
    answer = await alice.post("/v1/checks/browser", script_body("browser", script=script))
    assert answer.status == 400
    assert "together; use at most 1048576." in answer.body["message"]


@pytest.mark.parametrize("snippet_id", [1 << 63, 10**300, -1])
async def test_no_number_is_too_large_to_be_no_snippet(alice: ApiUser, snippet_id: int) -> None:
    answer = await alice.post("/v1/check-groups", group_body(setupSnippetId=snippet_id))
    assert (answer.status, answer.body["validation"]["keys"]) == (400, ["setupSnippetId"])


async def test_a_check_with_a_password_has_the_changed_snippet_and_stays_sealed(
    api: PublicApi, alice: ApiUser
) -> None:
    snippet_id = await a_snippet(alice, script="old")
    body = check_body("api", setupSnippetId=snippet_id)
    body["request"] |= {"basicAuth": {"username": "u", "password": "s3cr3t-passw0rd"}}
    check = await made(alice, "api", body)
    await alice.put(f"/v1/snippets/{snippet_id}", {"name": "sign", "script": "new"})
    query = select(check_.c.spec)
    stored = await api.database.read(lambda c: c.execute(query).scalar_one())
    assert is_encrypted(stored)
    named = {"account_id": alice.secrets.account_id, "check_id": check["id"]}
    spec = decode(decrypt_spec(stored, api.backend.vault, **named), ApiSpec)
    assert (spec.setup_script, spec.request.basic_auth) == (
        "new",
        BasicAuth(username="u", password="s3cr3t-passw0rd"),
    )


async def test_a_check_that_cannot_be_read_holds_no_snippet_back(
    api: PublicApi, alice: ApiUser
) -> None:
    snippet_id = await a_snippet(alice, script="old")
    broken, other = [
        await made(alice, "api", check_body("api", setupSnippetId=snippet_id)) for _ in range(2)
    ]
    lost = update(check_).where(check_.c.id == broken["id"]).values(spec=b"\1 not sealed")
    await api.database.write(lambda c: c.execute(lost))
    with capture_logs() as logs:
        changed = await alice.put(f"/v1/snippets/{snippet_id}", {"name": "sign", "script": "new"})
    assert changed.status == 200
    assert (await spec_of(api, other, ApiSpec)).setup_script == "new"
    assert broken["id"] in {one["check_id"] for one in logs if one["event"] == "checks.unreadable"}
