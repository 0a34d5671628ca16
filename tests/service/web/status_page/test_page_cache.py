"""Pages in memory: read once for all, and shown when the database is away."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from service.web.rendering import Renderer
from service.web.status_page.documents import PageDocuments, Place
from service.web.status_page.page_cache import FRESH_S, PageCache, RecordsAwayError
from service.web.status_page.snapshot import Snapshot, take_snapshot
from tests.builders.status_pages import a_page, a_service, an_incident
from tests.fakes.clock import START_MS
from tests.servers.public_api import ApiUser, PublicApi
from tests.service.web.status_page.conftest import Site

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def ruin(folder: Path) -> None:
    """Overwrite the database with something else, as a failing disk does."""
    for file in folder.glob("service.db*"):
        with file.open("r+b") as opened:
            opened.write(b"ruined " * 10_000)


async def test_a_page_outlives_its_database_and_says_how_old_it_is(
    site: Site, api: PublicApi, alice: ApiUser, tmp_path: Path
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    assert "All services are operational." in (await site.get("/status/shop")).text

    ruin(tmp_path)
    with pytest.raises(Exception, match=r"malformed|not a database|disk I/O"):
        await api.database.read(lambda c: take_snapshot(c, "shop", now_ms=START_MS))
    site.pass_s(720)
    answer = await site.get("/status/shop")

    assert answer.status == 200
    assert "All services are operational." in answer.text
    assert "This is how things stood at 10:00 UTC, 12 min ago." in answer.text
    for file in ("feed.rss", "theme.css", "status.json"):
        assert (await site.get(f"/status/shop/{file}")).status == 200
    site.pass_s(60)
    assert "13 min ago" in (await site.get("/status/shop")).text
    unknown = await site.get("/status/other")
    assert unknown.status == 503
    assert "cannot be read at the moment" in unknown.text


async def test_a_page_outlives_a_database_that_was_closed(
    site: Site, api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice))
    await site.get("/status/shop")

    await api.database.close()
    site.pass_s(30)
    young = await site.get("/status/shop")
    site.pass_s(3600)
    old = await site.get("/status/shop")

    assert "cannot be read" not in young.text
    assert "1 h ago" in old.text


async def test_the_page_says_nothing_of_it_once_the_database_answers_again(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice))
    reader = Reader(api)
    cache = PageCache(reader.read, monotonic=lambda: reader.now_s)
    await cache.find("shop")

    reader.problem = OSError("the disk is away")
    reader.now_s = 100
    away = await cache.find("shop")
    reader.problem = None
    reader.now_s = 102
    soon = await cache.find("shop")
    reader.now_s = 106
    back = await cache.find("shop")

    assert away is not None
    assert (away.is_last, away.age_s) == (True, 100)
    assert soon is not None
    assert soon.is_last  # the database is left alone for some seconds
    assert back is not None
    assert (back.is_last, back.age_s) == (False, 0)


async def test_a_hundred_visitors_at_once_cost_one_reading_and_one_rendering(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice))
    reader = Reader(api)
    cache = PageCache(reader.read, monotonic=lambda: reader.now_s)
    place = Place(home="/status/shop", base="/status/shop/", origin="https://a.example")

    async def visit() -> object:
        shown = await cache.find("shop")
        assert shown is not None
        return await shown.documents.find("index.html", place)

    pages = await asyncio.gather(*(visit() for _ in range(100)))

    assert reader.count == 1
    assert len({id(page) for page in pages}) == 1
    reader.now_s = FRESH_S - 1
    await visit()
    assert reader.count == 1
    reader.now_s = FRESH_S
    await asyncio.gather(*(visit() for _ in range(100)))
    assert reader.count == 2


async def test_a_visitor_who_leaves_takes_nobody_elses_page_along(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice)
    reader = Reader(api)
    reader.gate.clear()
    cache = PageCache(reader.read, monotonic=lambda: reader.now_s)

    leaving, staying = (asyncio.create_task(cache.find("shop")) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    reader.gate.set()

    assert await staying is not None
    assert reader.count == 1


async def test_a_change_during_a_reading_is_not_lost(api: PublicApi, alice: ApiUser) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    reader = Reader(api)
    cache = PageCache(reader.read, monotonic=lambda: reader.now_s)
    reader.gate.clear()
    early = asyncio.create_task(cache.find("shop"))
    await reader.has_read.wait()
    await an_incident(alice, service)
    cache.expire(object())
    reader.gate.set()
    await early

    found = await cache.find("shop")

    assert found is not None
    assert len(found.documents.snapshot.incidents) == 1


async def test_what_is_kept_of_unknown_pages_and_names_has_a_bound(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice)
    reader = Reader(api)
    cache = PageCache(reader.read, monotonic=lambda: reader.now_s)

    for number in range(300):
        assert await cache.find(f"no-{number}") is None
    shown = await cache.find("shop")
    assert shown is not None
    size = 0
    for number in range(200):
        place = Place(home="/", base="/", origin=f"https://{number:03}.example")
        assert await shown.documents.find("feed.rss", place) is not None
        size = max(size, shown.documents.size_bytes)

    assert not cache.has("no-1")
    assert size < 40_000


async def test_without_a_copy_and_a_database_there_is_an_error_that_says_so(api: PublicApi) -> None:
    reader = Reader(api)
    reader.problem = OSError("away")

    with pytest.raises(RecordsAwayError):
        await PageCache(reader.read, monotonic=lambda: 0).find("shop")


async def test_feeds_of_invented_hosts_displace_no_page_and_take_little_memory(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice), url="shop")
    documents = await Reader(api).read("shop")
    assert documents is not None
    own = Place(home="/status/shop", base="/status/shop/", origin="http://picket.internal")
    page = await documents.find("index.html", own)
    feed = await documents.find("feed.atom", own)
    assert feed is not None

    for order in range(40):
        place = replace(own, origin=f"http://host-{order}.example")
        theirs = await documents.find("feed.atom", place)
        assert theirs is not None
        assert f"http://host-{order}.example/status/shop".encode() in theirs.content

    assert await documents.find("index.html", own) is page
    assert len(documents._feeds) == 12
    again = await documents.find("feed.atom", own)
    assert again is not feed
    assert again == feed


async def test_a_feed_has_the_host_of_who_asks_and_nobody_elses(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_page(alice, await a_service(alice), url="shop")

    for host in ("evil.example", "picket.internal", "evil.example"):
        for file in ("feed.rss", "feed.atom", "feed.json", "status.json", ""):
            path = f"{api.url}/status/shop/{file}".rstrip("/")
            async with api.http.get(path, headers={"host": host}) as answer:
                text = await answer.text()
            other = {"evil.example": "picket.internal"}.get(host, "evil.example")
            assert answer.status == 200
            assert other not in text
            assert (host in text) == file.startswith("feed.")


class Reader:
    """Reads pages from the real database, as long as there is no problem."""

    def __init__(self, api: PublicApi) -> None:
        self._api = api
        self.count = 0
        self.now_s = 0.0
        self.problem: Exception | None = None
        self.has_read = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self, url: str) -> PageDocuments | None:
        """The page of an address."""
        self.count += 1
        if self.problem is not None:
            raise self.problem

        found: Snapshot | None = await self._api.database.read(
            lambda c: take_snapshot(c, url, now_ms=START_MS)
        )
        self.has_read.set()
        await self.gate.wait()
        if found is None:
            return None
        renderer = Renderer("https://picket.example.com")
        return PageDocuments(found, renderer, takes_subscribers=False)
