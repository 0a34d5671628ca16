import pytest

from tests.servers.public_api import ApiUser


async def test_a_key_tells_its_account(alice: ApiUser) -> None:
    answer = await alice.get("/v1/accounts/me")
    assert answer.status == 200
    assert answer.body["id"] == alice.secrets.account_id
    assert answer.body["name"] == "Default"
    assert answer.body["runtimeId"] == "2026.04"
    assert answer.body["planDisplayName"] == "Self-hosted"
    assert answer.body["alertSettings"]["escalationType"] == "RUN_BASED"


@pytest.mark.parametrize(
    "path", ["/v1/accounts", "/v1/accounts/{}", "/next/accounts", "/next/accounts/{}"]
)
async def test_an_account_is_the_same_wherever_it_is_read(alice: ApiUser, path: str) -> None:
    own = (await alice.get("/v1/accounts/me")).body
    found = (await alice.get(path.format(alice.secrets.account_id))).body
    assert found in (own, [own])


@pytest.mark.parametrize("path", ["me", "{}"])
async def test_entitlements_tell_where_checks_may_run(alice: ApiUser, path: str) -> None:
    await alice.post("/v1/private-locations", {"name": "Dublin", "slugName": "eu-west-1"})
    account = path.format(alice.secrets.account_id)
    found = await alice.get(f"/v1/accounts/{account}/entitlements")
    assert found.status == 200
    assert (found.body["plan"], found.body["entitlements"]) == ("self-hosted", [])
    offered = {one["id"]: one["available"] for one in found.body["locations"]["all"]}
    assert len(offered) == found.body["locations"]["maxPerCheck"] == 22
    assert [region for region, available in offered.items() if available] == ["eu-west-1"]


async def test_a_key_is_told_its_name(alice: ApiUser) -> None:
    own = await alice.get("/next/users/me")
    assert (own.status, own.body["name"]) == (200, "first start")


async def test_nobodys_account_is_not_there(alice: ApiUser) -> None:
    for prefix in ("/v1", "/next"):
        answer = await alice.get(f"{prefix}/accounts/nobody")
        assert (answer.status, answer.body["message"]) == (404, "There is no account nobody.")
