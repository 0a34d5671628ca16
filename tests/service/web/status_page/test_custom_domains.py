"""A page at a domain of its own."""

from http.cookies import SimpleCookie

import aiohttp
import pytest

from service.web.cookies import SESSION_COOKIE
from tests.builders.status_pages import PAGES, a_page, a_service
from tests.servers.public_api import ApiUser
from tests.service.web.status_page.conftest import Site

HOST = "status.example.com"


@pytest.mark.parametrize("host", [HOST, "Status.Example.COM", f"{HOST}:8443", f"{HOST}."])
async def test_the_page_stands_at_the_root_of_its_domain(
    site: Site, alice: ApiUser, host: str
) -> None:
    await a_page(alice, await a_service(alice), customDomain="Status.example.com")

    answer = await site.get("/", host=host)

    assert answer.status == 200
    assert "All services are operational." in answer.text
    assert 'href="/feed.atom"' in answer.text
    assert 'action="/subscribe"' in answer.text
    assert "/status/shop" not in answer.text
    sheet = answer.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert (await site.get(sheet, host=host)).status == 200
    feed = await site.get("/feed.atom", host=host)
    assert f"http://{host.lower()}/#" not in feed.text
    assert f'href="http://{host.lower()}/feed.atom"' in feed.text


@pytest.mark.parametrize(
    "path",
    [
        *("/sign-in", "/ui", "/v1/checks", "/v1/status-pages", "/docs", "/openapi.json"),
        *("/status/shop", "/status/other", "/status-pages/shop.json", "/metrics", "/assets/x/y"),
        *("//sign-in", "/../sign-in", "/%2e%2e/sign-in", "/index.php"),
    ],
)
async def test_nothing_else_of_the_service_answers_there(
    site: Site, alice: ApiUser, path: str
) -> None:
    await a_page(alice, customDomain=HOST)
    key = {"authorization": f"Bearer {alice.secrets.api_key}"}

    answer = await site.get(path, host=HOST, **key)

    assert answer.status == 404
    assert "There is no status page here" in answer.text
    posted = await site.ask("POST", path, headers={"host": HOST, **key}, json={})
    assert posted.status in {404, 405}


async def test_no_client_of_mqtt_connects_there(site: Site, alice: ApiUser) -> None:
    await a_page(alice, customDomain=HOST)
    async with site.http.ws_connect(site.url, protocols=("mqtt",)) as elsewhere:
        assert elsewhere.protocol == "mqtt"
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await site.http.ws_connect(site.url, protocols=("mqtt",), headers={"host": HOST})


async def test_a_domain_that_a_page_gives_up_shows_it_no_longer(site: Site, alice: ApiUser) -> None:
    page = await a_page(alice, customDomain=HOST)
    assert (await site.get("/", host=HOST)).status == 200

    body = {"name": "Shop status", "url": "shop", "cards": []}
    await alice.put(f"{PAGES}/{page['id']}", {**body, "customDomain": "other.example.com"})

    assert "Shop status" not in (await site.get("/", host=HOST)).text
    assert "Shop status" in (await site.get("/", host="other.example.com")).text


@pytest.mark.parametrize(
    "host", ["picket.example.com", "traces.example.com", "picket.localhost", "Picket.Example.com"]
)
async def test_nobody_takes_a_name_of_the_service(site: Site, alice: ApiUser, host: str) -> None:
    await a_page(alice, customDomain=host)

    assert (await site.get("/sign-in", host=host)).status == 200
    assert (await site.get("/status/shop", host=host)).status == 200
    assert "All services are operational." not in (await site.get("/", host=host)).text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "192.0.2.1", "picket"])
async def test_an_address_or_a_name_of_one_word_is_no_domain_of_a_page(
    alice: ApiUser, host: str
) -> None:
    body = {"name": "Shop status", "url": "shop", "cards": [], "customDomain": host}

    assert (await alice.post(PAGES, body)).status == 400


async def test_a_session_of_the_service_opens_nothing_at_a_pages_domain(
    site: Site, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice), customDomain=HOST)
    async with site.http.post(
        site.url + "/sign-in", data={"key": alice.secrets.api_key}, allow_redirects=False
    ) as entered:
        session = SimpleCookie(entered.headers["set-cookie"])[SESSION_COOKIE].value
    cookie = f"{SESSION_COOKIE}={session}"
    assert (await site.get("/settings", cookie=cookie)).status == 200

    page = await site.get("/", host=HOST, cookie=cookie)
    assert "All services are operational." in page.text
    for path in ("/settings", "/live"):
        assert (await site.get(path, host=HOST, cookie=cookie)).status == 404


async def test_a_private_page_asks_for_its_key_at_its_domain(site: Site, alice: ApiUser) -> None:
    page = await a_page(alice, isPrivate=True, customDomain=HOST)
    asked = await site.get("/", host=HOST)
    assert (asked.status, 'action="/key"' in asked.text) == (404, True)

    form = {"key": page["keys"][0]["rawKey"]}
    opened = await site.ask("POST", "/key", data=form, headers={"host": HOST})

    assert (opened.status, opened.headers["location"]) == (303, "/")
    assert "Path=/;" in opened.headers["set-cookie"]
