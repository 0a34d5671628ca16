from typing import Any

import pytest

from contract.result import Outcome, Status
from service.results.model import ResultType
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import START_MS, passed, store
from tests.servers.public_api import ApiUser, PublicApi


async def a_check_with(api: PublicApi, results: int) -> dict[str, Any]:
    check: dict[str, Any] = (await api.alice.post("/v1/checks/url", check_body("url"))).body
    for number in range(results):
        await store(api, check, passed(), started_ms=START_MS + number // 2)
    return check


async def ids_by_cursor(user: ApiUser, path: str, limit: int) -> list[str]:
    ids: list[str] = []
    query = f"limit={limit}"
    while True:
        body = (await user.get(f"{path}?{query}")).body
        assert body["length"] == len(body["entries"]) <= limit
        ids += [one["id"] for one in body["entries"]]
        if body["nextId"] is None:
            return ids
        query = f"limit={limit}&nextId={body['nextId']}"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
async def test_a_cursor_meets_each_result_once_newest_first(api: PublicApi, limit: int) -> None:
    """Two results of each moment: the cursor stands between them, too."""
    check = await a_check_with(api, 7)
    whole = (await api.alice.get(f"/v1/check-results/{check['id']}?limit=100")).body
    path = f"/v2/check-results/{check['id']}"
    assert await ids_by_cursor(api.alice, path, limit) == [one["id"] for one in whole]


async def test_new_results_do_not_shift_a_cursor(api: PublicApi) -> None:
    check = await a_check_with(api, 4)
    path = f"/v2/check-results/{check['id']}?limit=2"
    first = (await api.alice.get(path)).body
    await store(api, check, passed(), started_ms=START_MS + 9_000)
    second = (await api.alice.get(f"{path}&nextId={first['nextId']}")).body
    assert not {one["id"] for one in first["entries"]} & {one["id"] for one in second["entries"]}
    assert second["length"] == 2


async def test_a_cursor_keeps_to_the_filters(api: PublicApi) -> None:
    check = await a_check_with(api, 2)
    failed = Outcome(status=Status.FAILED)
    for number in range(3):
        await store(api, check, failed, started_ms=START_MS + 5_000 + number)
    retried = {"result_type": ResultType.ATTEMPT, "started_ms": START_MS + 5_001}
    await store(api, check, failed, **retried)
    results = f"/v2/check-results/{check['id']}"

    async def found(query: str) -> int:
        answer = await api.alice.get(f"{results}?limit=100&{query}")
        return int(answer.body["length"])

    assert await found("hasFailures=true") == 3
    assert await found("hasFailures=true&resultType=ALL") == 4
    assert await found("resultType=ATTEMPT") == 1
    assert await found("location=elsewhere") == 0
    assert await found("checkType=API") == 0
    assert await found(f"from={START_MS + 5_001}&to={START_MS + 5_002}") == 1


async def test_fields_are_chosen_by_name(api: PublicApi) -> None:
    check = await a_check_with(api, 1)
    path = f"/v2/check-results/{check['id']}"
    (one,) = (await api.alice.get(f"{path}?fields=id,%20status&fields=created_at")).body["entries"]
    assert set(one) == {"id", "status", "created_at"}


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("nextId=x", "nextId"),
        ("nextId=01A205F6-3CDD-793B-86E6-082468100C07", "nextId"),
        ("nextId=urn:uuid:01a205f6-3cdd-793b-86e6-082468100c07", "nextId"),
        ("fields=nope", "fields"),
        ("resultType=all", "resultType"),
        ("from=yesterday", "from"),
        ("from=1790000001&to=1790000000", "from"),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_wrong_query_of_either_list_is_named(
    api: PublicApi, version: str, query: str, key: str
) -> None:
    check = await a_check_with(api, 0)
    answer = await api.alice.get(f"/{version}/check-results/{check['id']}?{query}")
    if version == "v1" and key == "fields":
        assert answer.status == 200
        return
    assert answer.status == 400
    assert answer.body["validation"]["keys"][0] == key


@pytest.mark.parametrize(
    ("path", "sent", "meant"),
    [
        ("/v2/check-results", "page", "nextId"),
        ("/v1/check-results", "nextId", "page"),
    ],
)
async def test_another_lists_way_from_page_to_page_is_refused(
    api: PublicApi, path: str, sent: str, meant: str
) -> None:
    """Passed over it would show the same page for ever."""
    check = await a_check_with(api, 0)
    answer = await api.alice.get(f"{path}/{check['id']}?{sent}=2&other=3")
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "query", "keys": [sent]}
    assert answer.body["message"] == f'"{sent}" is not a known parameter; did you mean {meant}?'


async def test_a_way_from_page_to_page_is_passed_over_where_there_is_one_page(
    api: PublicApi,
) -> None:
    assert (await api.alice.get("/v1/private-locations?page=2&nextId=x")).status == 200


@pytest.mark.parametrize("query", ["limit=1", "limit=100", "from=1790000000&to=1790000000"])
async def test_both_ends_of_each_limit_are_taken(api: PublicApi, query: str) -> None:
    check = await a_check_with(api, 1)
    for version in ("v1", "v2"):
        answer = await api.alice.get(f"/{version}/check-results/{check['id']}?{query}")
        assert answer.status == 200, answer.body


async def test_a_page_tells_of_the_next_one_as_long_as_there_is_one(api: PublicApi) -> None:
    check = await a_check_with(api, 4)
    path = f"/v1/check-results/{check['id']}?resultType=ALL&limit=2"
    first = await api.alice.get(path)
    link = first.headers["link"]
    assert link == f'<{api.url}{path}&page=2>; rel="next"'
    second = await api.alice.get(link.partition(">")[0].removeprefix(f"<{api.url}"))
    assert len(second.body) == 2
    assert "link" not in second.headers
