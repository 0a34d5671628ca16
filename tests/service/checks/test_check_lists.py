"""`/v1/checks` and the other lists: their pages, and what narrows them."""

import pytest

from tests.builders.check_bodies import check_body
from tests.builders.made_checks import made
from tests.servers.public_api import ApiUser


@pytest.mark.parametrize(("sent", "meant"), [("tags", "tag"), ("checktype", "checkType")])
async def test_a_misspelt_filter_is_refused_instead_of_passed_over(
    alice: ApiUser, sent: str, meant: str
) -> None:
    refused = await alice.get(f"/v1/checks?{sent}=shop")
    assert refused.status == 400
    assert refused.body["message"] == f'"{sent}" is not a known parameter; did you mean {meant}?'
    assert refused.body["validation"] == {"source": "query", "keys": [sent]}
    assert (await alice.get("/v1/checks?deployment=shop")).status == 200


async def test_a_list_has_pages(alice: ApiUser) -> None:
    ids = [(await made(alice, name=f"c{number}"))["id"] for number in range(3)]
    pages = [(await alice.get(f"/v1/checks?limit=2&page={page}")).body for page in (1, 2, 3)]
    assert [[check["id"] for check in page] for page in pages] == [ids[:2], ids[2:], []]


async def test_a_list_says_how_many_items_all_its_pages_have(alice: ApiUser) -> None:
    for number in range(3):
        await made(alice, name=f"c{number}", tags=["odd"] if number % 2 else [])
    ranges = {
        query: (await alice.get(f"/v1/checks?{query}")).headers["content-range"]
        for query in ("limit=2", "limit=2&page=2", "limit=2&page=3", "tag=odd")
    }
    assert ranges == {
        "limit=2": "0-1/3",
        "limit=2&page=2": "2-2/3",
        "limit=2&page=3": "*/3",
        "tag=odd": "0-0/1",
    }


async def test_a_list_can_be_narrowed(alice: ApiUser) -> None:
    await made(alice, "url", name="Shop 100%", tags=["prod", "web"])
    await made(alice, "tcp", name="Mail", tags=["prod"])
    await made(alice, "api", name="Orders", tags=["Webhooks"])

    async def names(query: str) -> list[str]:
        answer = await alice.get(f"/v1/checks?{query}")
        assert answer.status == 200, answer.body
        return [check["name"] for check in answer.body]

    assert await names("tag=prod") == ["Shop 100%", "Mail"]
    assert await names("tag=prod&tag=web") == ["Shop 100%"]
    assert await names("checkType=TCP") == ["Mail"]
    assert await names("search=shop") == ["Shop 100%"]
    assert await names("search=WEB") == ["Shop 100%", "Orders"]
    assert await names("search=0%25") == ["Shop 100%"]
    assert await names("search=_ail") == []
    assert await names("apiCheckUrlFilterPattern=shop.test") == ["Orders"]
    assert await names("status=failing") == []


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("page=-1", "page"),
        ("page=9223372036854775808", "page"),
        ("checkType=CAKE", "checkType"),
        ("status=fine", "status"),
    ],
)
async def test_a_wrong_query_is_named(alice: ApiUser, query: str, key: str) -> None:
    answer = await alice.get(f"/v1/checks?{query}")
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "query", "keys": [key]}


@pytest.mark.parametrize(
    "query",
    [
        "search=" + "a" * 1001,
        "apiCheckUrlFilterPattern=" + "a" * 2049,
        "&".join(f"tag=t{order}" for order in range(51)),
    ],
    ids=["search", "url", "tags"],
)
async def test_a_filter_that_the_database_could_not_take_is_refused(
    alice: ApiUser, query: str
) -> None:
    assert (await alice.get(f"/v1/checks?{query}")).status == 400


async def test_each_list_in_pages_tells_of_its_next_page(alice: ApiUser) -> None:
    await alice.post("/v1/checks/url", check_body("url", tags=["a b"]))
    for name in ("one", "two"):
        await alice.post("/v1/checks/url", check_body("url", name=name, tags=["a b"]))
        await alice.post("/v1/snippets", {"name": name, "script": "1"})
        await alice.post("/v1/variables", {"key": name.upper(), "value": "1"})
    for path in ("/v1/checks", "/v1/snippets", "/v1/variables"):
        first = await alice.get(f"{path}?limit=1")
        assert first.headers["link"] == f'<{alice.url}{path}?limit=1&page=2>; rel="next"'
        assert "link" not in (await alice.get(f"{path}?limit=3")).headers
    tagged = await alice.get("/v1/checks?tag=a%20b&tag=a%20b&limit=2")
    assert (
        tagged.headers["link"]
        == f'<{alice.url}/v1/checks?tag=a+b&tag=a+b&limit=2&page=2>; rel="next"'
    )
    assert len((await alice.get("/v1/checks?tag=a+b&limit=2&page=2")).body) == 1
