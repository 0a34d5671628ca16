"""Whatever clients of the established service send is taken, and slips of the pen are not."""

import time
from typing import Any

import pytest

from tests.builders.check_bodies import LEAST, check_body, script_body, with_request
from tests.servers.public_api import ApiUser

OF_OTHERS = (
    *("id", "checkType", "created_at", "updated_at", "alertChannels", "pingUrl", "accountId"),
    *("script", "scriptPath", "dependencies", "snapshots", "logicalId", "projectId", "sourceFile"),
    *("sslCheckDomain", "sslChecksEnabled", "playwrightConfig", "heartbeat", "environments"),
    *("setupScript", "tearDownScript", "setupSnippetId", "tearDownSnippetId", "localSetupScript"),
    *("localTearDownScript", "maxPacketLossThreshold", "degradedPacketLossThreshold", "prompt"),
    *("codeBundlePath", "testCommand", "installCommand", "browsers", "cacheHash", "workingDir"),
    *("degradedResponseTime", "maxResponseTime", "frequencyOffset", "isPreview", "deletedAt"),
    *("alertPolicyId", "muteUntil", "agentRuntime", "traceId", "pwProjects", "pwTags", "include"),
)
"""Fields that its clients send with any type, those of other types and of later versions too."""


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.parametrize("empty", [None, ""])
async def test_fields_of_other_types_and_versions_are_passed_over(
    alice: ApiUser, kind: str, empty: Any
) -> None:
    body = check_body(kind)
    known = (await alice.post(f"/v1/checks/{kind}", body)).body
    more = {name: empty for name in OF_OTHERS if name not in known}
    answer = await alice.post(f"/v1/checks/{kind}", {**body, **more})
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("kind", LEAST)
async def test_a_field_of_another_type_or_version_is_named_without_a_guess(
    alice: ApiUser, kind: str
) -> None:
    body = check_body(kind)
    known = (await alice.post(f"/v1/checks/{kind}", body)).body
    others = sorted({*OF_OTHERS, "intent", "aiAutoRepairEnabled"} - known.keys())
    for few in (others[at : at + 15] for at in range(0, len(others), 15)):
        answer = await alice.post(f"/v1/checks/{kind}", {**body, **dict.fromkeys(few)})
        assert answer.status == 201, answer.body
        named = answer.headers.get("x-ignored-fields", "")
        assert [one for one in named.split(", ") if "(" in one] == []


@pytest.mark.parametrize(
    ("slip", "meant", "path"),
    [
        ({"maxResponsTime": 5}, "maxResponseTime", "maxResponsTime"),
        ({"privateLocation": ["default"]}, "privateLocations", "privateLocation"),
        ({"groupid": 7}, "groupId", "groupid"),
        ({"tag": ["a"]}, "tags", "tag"),
        ({"retryStrategy": {"type": "FIXED", "maxRetriess": 3}}, "maxRetries", None),
    ],
)
async def test_a_field_that_is_nearly_a_known_one_is_refused(
    alice: ApiUser, slip: dict[str, Any], meant: str, path: str | None
) -> None:
    answer = await alice.post("/v1/checks/api", check_body("api", **slip))
    key = path or "retryStrategy.maxRetriess"
    assert answer.status == 400
    assert answer.body["message"] == f'"{key}" is not a known field; did you mean {meant}?'
    assert answer.body["validation"]["keys"] == [key]


async def test_a_slip_deep_in_a_body_is_told_with_its_path(alice: ApiUser) -> None:
    body = with_request("api", headers=[{"key": "a", "value": "b", "loked": True}])
    answer = await alice.post("/v1/checks/api", body)
    assert answer.body["validation"]["keys"] == ["request.headers[0].loked"]


async def test_a_slip_in_another_body_is_refused_too(alice: ApiUser) -> None:
    secret = {"key": "TOKEN", "value": "x", "secrets": True}
    assert (await alice.post("/v1/variables", secret)).status == 400
    place = {"name": "Cellar", "slugName": "cellar", "proxyURL": "http://p.test"}
    assert (await alice.post("/v1/private-locations", place)).status == 400


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        *(("secert", "secret"), ("secrte", "secret"), ("screte", "secret"), ("escret", "secret")),
        *(("lcoked", "locked"), ("lokced", "locked"), ("ekY", "key")),
    ],
)
async def test_swapped_letters_never_leave_a_variable_readable(
    alice: ApiUser, slip: str, meant: str
) -> None:
    variable = {"key": "API_TOKEN", "value": "correct-horse", slip: True}
    answer = await alice.post("/v1/variables", variable)
    assert answer.status == 400
    assert answer.body["message"] == f'"{slip}" is not a known field; did you mean {meant}?'
    inside = check_body("api", environmentVariables=[variable])
    answer = await alice.post("/v1/checks/api", inside)
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == [f"environmentVariables[0].{slip}"]


HALF = "\ud800"
"""Of a surrogate pair: JSON can say it, and no text of an answer can hold it."""


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            "/v1/variables",
            {"key": "A", "value": "x", f"secret{HALF}": True},
            '"secret?" is not a known field; did you mean secret?',
        ),
        (
            "/v1/check-sessions/trigger",
            {"target": {f"{HALF}x": 1}},
            '"target.?x" is not a known field; use ',
        ),
        (
            "/v1/checks/browser",
            script_body("browser", playwrightConfig={HALF: 1}),
            '"playwrightConfig.?" cannot be set here; use ',
        ),
        ("/v1/variables", {"key": HALF, "value": "x"}, '"key" contains half a surrogate pair.'),
    ],
)
async def test_half_a_surrogate_pair_in_a_name_is_the_senders_fault(
    alice: ApiUser, path: str, body: dict[str, Any], said: str
) -> None:
    answer = await alice.post(path, body)
    assert answer.status == 400
    assert answer.body["message"].startswith(said)


async def test_many_thousand_unknown_fields_cost_little(alice: ApiUser) -> None:
    many = {f"{'x' * 4}{number}": 1 for number in range(60_000)}
    before = time.process_time()
    assert (await alice.post("/v1/checks/api", {**check_body("api"), **many})).status == 201
    assert time.process_time() - before < 15.0


@pytest.mark.parametrize(
    "path",
    [
        "/v1/checks?limit=1&limit=2",
        "/v1/checks?page=1&limit=5&page=2",
        "/v1/check-results/x?resultType=FINAL&resultType=ALL",
        "/checks/x/trigger/y?runLocation=a&runLocation=b",
    ],
)
async def test_a_parameter_that_is_given_twice_is_refused(alice: ApiUser, path: str) -> None:
    answer = await alice.get(path)
    [name] = answer.body["validation"]["keys"]
    assert answer.status == 400
    assert answer.body["message"] == f'"{name}" is given 2 times; send it once.'


async def test_lists_and_parameters_of_others_may_be_given_twice(alice: ApiUser) -> None:
    assert (await alice.get("/v1/checks?tag=a&tag=b&later=1&later=2")).status == 200
