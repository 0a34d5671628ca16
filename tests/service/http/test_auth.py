"""Who may do what, for whom, and how often."""

from pathlib import Path
from typing import Any

import pytest

from service.accounts.model import Role
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api
from tests.servers.service import RunningService, serve_service

WRONG = {"authorization": "Bearer cu_wrong"}


async def test_a_key_that_may_only_read_reads(api: PublicApi) -> None:
    reader = await api.colleague("Reader", role=Role.READ_ONLY)
    for path in ("/v1/checks", "/v1/snippets", "/v1/accounts/me"):
        assert (await reader.get(path)).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/checks/url"),
        ("PUT", "/v1/snippets/1"),
        ("DELETE", "/v1/checks/1"),
        ("POST", "/v1/check-sessions/trigger"),
        ("POST", "/v1/private-locations"),
    ],
)
async def test_a_key_that_may_only_read_is_told_which_role_it_takes(
    api: PublicApi, method: str, path: str
) -> None:
    reader = await api.colleague("Reader", role=Role.READ_ONLY)
    body = None if method == "DELETE" else {}
    answer = await reader.ask(method, path, body)
    assert (answer.status, answer.body["error"]) == (403, "Forbidden")
    said = f"This API key is READ_ONLY; {method} takes one that is READ_WRITE."
    assert answer.body["message"] == said


async def test_what_is_forbidden_is_counted_too(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=2) as api:
        reader = await api.colleague("Reader", role=Role.READ_ONLY)
        refused = [await reader.post("/v1/check-sessions/trigger") for _ in range(3)]
        assert [answer.status for answer in refused] == [403, 403, 429]


@pytest.mark.parametrize("header", ["x-service-account", "x-checkly-account"])
async def test_the_account_may_be_named_in_either_header(
    alice: ApiUser, charlie: ApiUser, header: str
) -> None:
    own = {header: alice.secrets.account_id}
    assert (await alice.get("/v1/checks", headers=own)).status == 200
    refused = await charlie.get("/v1/checks", headers=own)
    assert refused.status == 403
    assert refused.body["message"].endswith(f"the account in {header}.")


async def test_an_address_that_tries_keys_is_held_back_and_its_neighbours_go_on(
    tmp_path: Path,
) -> None:
    async with serve_public_api(tmp_path, per_minute=3) as api:
        assert (await api.alice.get("/v1/checks")).status == 200
        tried = [(await api.alice.get("/v1/checks", headers=WRONG)).status for _ in range(5)]
        assert tried == [401, 401, 401, 429, 429]
        assert (await api.alice.get("/v1/checks")).status == 200


@pytest.mark.parametrize("wrong", ["nonsense", f"cu_{'0' * 43}", f"sv_{'0' * 43}"])
async def test_a_good_key_that_never_came_before_is_let_in_however_many_were_refused_there(
    tmp_path: Path, wrong: str
) -> None:
    async with serve_public_api(tmp_path, per_minute=2) as api:
        bob = await api.colleague("Bob")
        headers = {"authorization": f"Bearer {wrong}"}
        tried = [(await api.alice.get("/v1/checks", headers=headers)).status for _ in range(3)]
        assert tried == [401, 401, 429]
        assert (await bob.get("/v1/checks")).status == 200
        assert (await bob.post("/v1/snippets", {"name": "a", "script": "1"})).status == 201


@pytest.mark.parametrize(
    "sent",
    [
        {"data": b"{bad"},
        {"data": b"[" * 100_000},
        {"data": b"a=1", "headers": {**WRONG, "content-type": "text/plain"}},
        {"data": b"{}", "headers": {**WRONG, "content-encoding": "br"}},
    ],
)
async def test_whoever_has_no_key_is_told_so_whatever_the_body(
    tmp_path: Path, sent: dict[str, Any]
) -> None:
    json = {**WRONG, "content-type": "application/json"}
    async with serve_public_api(tmp_path, per_minute=3) as api:
        asked = [await api.alice.post("/v1/snippets", **{"headers": json, **sent}) for _ in "1234"]
    assert [one.status for one in asked] == [401, 401, 401, 429]
    assert asked[0].body["message"].startswith("Bad Token")


async def test_operations_without_a_key_are_counted_by_address(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=2) as api:
        asked = [await api.alice.get("/v1/runtimes") for _ in range(3)]
        assert [answer.status for answer in asked] == [200, 200, 429]
        assert asked[-1].body["error"] == "Too Many Requests"
        assert asked[-1].headers["retry-after"]


async def test_each_class_is_counted_for_itself(tmp_path: Path) -> None:
    async with serve_service(tmp_path, api_requests=3, result_lists=1) as service:
        made = await service.a_url_check()
        lists = [await service.alice.get(f"/v1/check-results/{made}") for _ in range(2)]
        assert [answer.status for answer in lists] == [200, 429]
        assert (await service.alice.get(f"/v1/checks/{made}")).status == 200


async def test_agents_have_a_class_of_their_own(tmp_path: Path) -> None:
    async with serve_service(tmp_path, api_requests=1, agent_requests=2) as service:
        assert (await service.hello()).status == 200
        assert (await _pings(service)) == 200
        assert (await _pings(service)) == 429
        assert (await service.alice.get("/v1/checks")).status == 200


async def test_keys_that_are_no_agents_are_counted_by_address(tmp_path: Path) -> None:
    async with serve_service(tmp_path, refused_requests=1) as service:
        wrong = {"authorization": "Bearer pl_wrong"}
        answers = [await service.agent("POST", "/agent/v1/hello", {}, headers=wrong) for _ in "ab"]
        assert [answer.status for answer in answers] == [401, 429]
        assert (await service.hello()).status == 200


async def _pings(service: RunningService) -> int:
    return (await service.agent("POST", "/agent/v1/pings", {"pings": []})).status


async def test_what_clients_in_go_send_for_nothing_is_nothing(alice: ApiUser) -> None:
    body = check_body(
        "url",
        id="",
        created_at="0001-01-01T00:00:00Z",
        updated_at="0001-01-01T00:00:00Z",
        checkType="URL",
        groupId=0,
        runtimeId="",
        alertChannels={"email": []},
        locations=[],
    )
    assert (await alice.post("/v1/checks/url", body)).status == 201
