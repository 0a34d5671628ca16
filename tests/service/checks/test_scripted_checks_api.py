from typing import Any

import pytest
from sqlalchemy import select

from contract.checks import BrowserSpec, Dependency, MultiStepSpec, PlaywrightSpec
from contract.wire import decode
from service.db.tables.checks import check_
from tests.builders.check_bodies import SCRIPTED, check_body, script_body
from tests.builders.code_bundles import a_bundle, suite_body
from tests.servers.public_api import ApiUser, PublicApi

TYPES = {"browser": "BROWSER", "multistep": "MULTI_STEP"}


async def stored(api: PublicApi, kind: Any) -> Any:
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    assert row.lane == "main"
    return decode(row.spec, kind)


@pytest.mark.parametrize("kind", SCRIPTED)
async def test_a_scripted_check_is_made_read_changed_and_deleted(alice: ApiUser, kind: str) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", script_body(kind))
    assert answer.status == 201, answer.body
    check = answer.body
    assert check["checkType"] == TYPES[kind]
    assert (await alice.get(f"/v1/checks/{check['id']}")).body == check
    changed = await alice.put(f"/v1/checks/{kind}/{check['id']}", script_body(kind, name="Other"))
    assert (changed.status, changed.body["name"]) == (200, "Other")
    listed = await alice.get(f"/v1/checks?checkType={TYPES[kind]}")
    assert [one["id"] for one in listed.body] == [check["id"]]
    assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 204


async def test_the_spec_of_a_browser_check_holds_what_was_written(
    api: PublicApi, alice: ApiUser
) -> None:
    files = [{"path": "pages/login.ts", "content": "export const x = 1"}]
    body = script_body(
        "browser",
        scriptPath="checks/shop.spec.ts",
        dependencies=files,
        runtimeId="2025.04",
        sslCheckDomain="shop.test",
        playwrightConfig={"timeout": 60_000, "use": {"locale": "de-DE"}},
    )
    answer = await alice.post("/v1/checks/browser", body)
    assert answer.status == 201, answer.body
    assert body.items() <= answer.body.items()
    spec: BrowserSpec = await stored(api, BrowserSpec)
    assert spec == BrowserSpec(
        script=body["script"],
        script_path="checks/shop.spec.ts",
        dependencies=(Dependency(path="pages/login.ts", content="export const x = 1"),),
        runtime_id="2025.04",
        ssl_check_domain="shop.test",
        playwright_config={"timeout": 60_000, "use": {"locale": "de-DE"}},
    )


async def test_the_defaults_of_a_multi_step_check_are_filled_in(
    api: PublicApi, alice: ApiUser
) -> None:
    answer = await alice.post("/v1/checks/multistep", script_body("multistep"))
    expected = {"frequency": 10, "scriptPath": None, "dependencies": [], "playwrightConfig": None}
    assert expected.items() <= answer.body.items()
    spec: MultiStepSpec = await stored(api, MultiStepSpec)
    assert spec == MultiStepSpec(script=SCRIPTED["multistep"]["script"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"script": None}, '"script" is null; use a string.'),
        ({"script": ""}, '"script" must not be empty.'),
        ({"script": "x" * 524_289}, '"script" has 524289 bytes; use at most 524288.'),
        ({"scriptPath": "../x.js"}, '"scriptPath" is ../x.js; it must lead down'),
        (
            {"dependencies": [{"path": "/x.js", "content": ""}]},
            '"dependencies[0].path" is /x.js; use a relative path',
        ),
        (
            {"dependencies": [{"path": "script.js", "content": ""}]},
            '"dependencies[0].path" is script.js, which another file of the check has.',
        ),
        (
            {"playwrightConfig": {"workers": 2}},
            '"playwrightConfig.workers" cannot be set here; use timeout, use, expect.',
        ),
        (
            {"playwrightConfig": {"use": {"launchOptions": {}}}},
            '"playwrightConfig.use.launchOptions" cannot be set here; use actionTimeout,',
        ),
        (
            {"dependencies": [{"path": f"{n}.js", "content": ""} for n in range(201)]},
            '"dependencies" has 201 files; use at most 200.',
        ),
        (
            {"dependencies": [{"path": "a.js", "content": ""}] * 2},
            '"dependencies[1].path" is a.js, which another file of the check has.',
        ),
        (
            {"dependencies": [{"path": "a.js", "content": "x" * 524_289}]},
            '"dependencies[0].content" has 524289 bytes; use at most 524288.',
        ),
        ({"playwrightConfig": {"timeout": 240_001}}, '"playwrightConfig.timeout" must be a number'),
        ({"runtimeId": "2024.09"}, '"runtimeId" is 2024.09, which no agent has; use 2026.04'),
        ({"runtimeId": "1999.01"}, '"runtimeId" is 1999.01, which no agent has; use 2026.04 or'),
        (
            {"runtimeId": 2026.04},
            '"runtimeId" is the number 2026.04; put it in quotes, as in "2026',
        ),
        ({"frequency": 0, "frequencyOffset": 10}, '"frequency" is 0, which only API and TCP'),
        ({"shouldFail": True}, '"shouldFail" would have no effect'),
        ({"localSetupScript": "1"}, '"localSetupScript" would not run: only API checks'),
        ({"sslCheckDomain": "https://a.test/"}, '"sslCheckDomain" must be a host name'),
    ],
)
async def test_a_mistake_is_told_in_a_sentence_with_its_field(
    alice: ApiUser, fields: dict[str, Any], said: str
) -> None:
    answer = await alice.post("/v1/checks/browser", script_body("browser", **fields))
    assert answer.status == 400
    assert answer.body["message"].startswith(said)
    assert answer.body["validation"]["keys"] == [said.split('"')[1]]


async def test_a_question_ends_with_its_own_mark(alice: ApiUser) -> None:
    slip = script_body("browser", playwrightConfig={"use": {"baseUrl": "https://a.test"}})
    message = (await alice.post("/v1/checks/browser", slip)).body["message"]
    assert message == '"playwrightConfig.use.baseUrl" cannot be set here; did you mean baseURL?'


@pytest.mark.parametrize(
    "fields",
    [
        {"script": "x" * 524_288},
        {"dependencies": [{"path": "a.js", "content": "x" * 524_288}]},
        {"dependencies": [{"path": f"{n}.js", "content": ""} for n in range(200)]},
        {"playwrightConfig": {"timeout": 240_000}},
        {"runtimeId": "2026.04"},
        {"runtimeId": "2025.04"},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_what_is_as_large_as_it_may_be_is_taken(
    alice: ApiUser, fields: dict[str, Any]
) -> None:
    answer = await alice.post("/v1/checks/browser", script_body("browser", **fields))
    assert answer.status == 201, answer.body


async def test_a_check_of_another_type_is_pointed_to_its_path(alice: ApiUser) -> None:
    made = await alice.post("/v1/checks/multistep", script_body("multistep"))
    path = f"/v1/checks/browser/{made.body['id']}"
    answer = await alice.put(path, script_body("browser"))
    assert answer.status == 400
    assert f"use PUT /v1/checks/multistep/{made.body['id']}." in answer.body["message"]


@pytest.mark.parametrize("phase", ["localSetupScript", "localTearDownScript"])
async def test_a_phase_is_as_large_as_a_script_and_runs_on_what_agents_have(
    alice: ApiUser, phase: str
) -> None:
    made = await alice.post("/v1/checks/api", check_body("api", **{phase: "x" * 524_288}))
    assert made.status == 201, made.body
    for fields, said in (
        ({phase: "x" * 524_289}, f'"{phase}" has 524289 bytes; use at most 524288.'),
        ({phase: "1", "runtimeId": "2023.02"}, '"runtimeId" is 2023.02, which no agent has;'),
    ):
        answer = await alice.post("/v1/checks/api", check_body("api", **fields))
        assert (answer.status, answer.body["message"].startswith(said)) == (400, True)


@pytest.mark.parametrize("runtime", ["2022.10", "2024.09", "2025.04"])
async def test_without_scripts_any_runtime_of_the_specification_is_kept(
    alice: ApiUser, runtime: str
) -> None:
    answer = await alice.post("/v1/checks/api", check_body("api", runtimeId=runtime))
    assert (answer.status, answer.body["runtimeId"]) == (201, runtime)


async def test_scripts_of_an_api_check_are_its_spec(api: PublicApi, alice: ApiUser) -> None:
    body = check_body("api", localSetupScript="1", localTearDownScript="2", runtimeId="2025.04")
    answer = await alice.post("/v1/checks/api", body)
    assert (answer.body["localSetupScript"], answer.body["localTearDownScript"]) == ("1", "2")
    spec = await stored(api, Any)
    assert (spec["setupScript"], spec["teardownScript"]) == ("1", "2")
    assert spec["runtimeId"] == "2025.04"


async def test_a_suite_is_made_from_a_bundle_that_was_sent(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    body = suite_body(
        sha256,
        testCommand="npx playwright test --project=chromium",
        browsers=["chromium"],
        workingDir="e2e",
        engine="node",
        engineVersion="24",
        runtimeId="2025.04",
        cacheHash="c0ffee",
        playwrightVersion="1.58.2",
    )
    answer = await alice.post("/v1/checks/playwright", body)
    assert answer.status == 201, answer.body
    assert answer.body["checkType"] == "PLAYWRIGHT"
    assert body.items() <= answer.body.items()
    spec: PlaywrightSpec = await stored(api, PlaywrightSpec)
    assert spec == PlaywrightSpec(
        bundle_sha256=sha256,
        test_command="npx playwright test --project=chromium",
        browsers=("chromium",),
        working_dir="e2e",
        engine="node",
        engine_version="24",
        runtime_id="2025.04",
        cache_hash="c0ffee",
        playwright_version="1.58.2",
    )
    path = f"/v1/checks/playwright/{answer.body['id']}"
    assert (await alice.put(path, suite_body(sha256, workingDir="."))).body["workingDir"] == "."
    assert (await alice.put(path, {"workingDir": None})).body["workingDir"] is None
    older = await alice.put(path, suite_body(sha256, runtimeId="2024.09"))
    assert older.body["message"].startswith('"runtimeId" is 2024.09, which no agent has; use 2026')


@pytest.mark.parametrize(
    ("field", "most"),
    [("testCommand", 2000), ("installCommand", 2000), ("cacheHash", 200), ("engineVersion", 200)],
)
async def test_texts_of_a_suite_have_a_length_that_is_said(
    alice: ApiUser, field: str, most: int
) -> None:
    sha256 = await a_bundle(alice)
    made = await alice.post("/v1/checks/playwright", suite_body(sha256, **{field: "x" * most}))
    assert (made.status, len(made.body[field])) == (201, most)
    longer = suite_body(sha256, **{field: "x" * (most + 1)})
    answer = await alice.post("/v1/checks/playwright", longer)
    assert (answer.status, answer.body["validation"]["keys"]) == (400, [field])
    assert str(most) in answer.body["message"]


async def test_a_suite_needs_a_bundle_of_its_own_account(alice: ApiUser, charlie: ApiUser) -> None:
    foreign = await a_bundle(charlie)
    answer = await alice.post("/v1/checks/playwright", suite_body(foreign))
    assert answer.status == 400
    assert answer.body["message"] == (
        '"codeBundlePath" names a bundle that was not sent; send the tar.gz to'
        f" PUT /v1/code-bundles/{foreign} first."
    )


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"codeBundlePath": "../etc"}, "codeBundlePath"),
        ({"browsers": ["lynx"]}, "browsers[0]"),
        ({"engine": "deno"}, "engine"),
        ({"workingDir": "/"}, "workingDir"),
        ({"retryStrategy": {"type": "FIXED"}}, "retryStrategy"),
        ({"frequency": 0, "frequencyOffset": 10}, "frequency"),
    ],
)
async def test_a_mistake_in_a_suite_is_told_with_its_field(
    alice: ApiUser, fields: dict[str, Any], key: str
) -> None:
    answer = await alice.post("/v1/checks/playwright", suite_body("ab" * 32, **fields))
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == [key]
