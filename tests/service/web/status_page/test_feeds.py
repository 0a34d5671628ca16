"""Feeds, as feed readers read them."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests.builders.status_pages import a_page, a_service, an_incident, say
from tests.fakes.clock import START_MS
from tests.servers.public_api import ApiUser
from tests.service.web.status_page.conftest import Site

ATOM: Final = "{http://www.w3.org/2005/Atom}"
HOME: Final = "https://picket.example.com/status/shop"
HOSTILE: Final = "<script>alert(1)</script> & ]]> \u202e \x07 \ufffe é \U0001f600"


@pytest.fixture
async def shop(site: Site, alice: ApiUser) -> str:
    """A page with one incident of two updates; its incident's id."""
    service = await a_service(alice)
    await a_page(alice, service, name=f"Shop {HOSTILE}")
    first = {"description": HOSTILE, "publicIncidentUpdateDate": "2026-11-21T09:00:00Z"}
    incident = await an_incident(
        alice, service, name=f"Orders {HOSTILE}", severity="CRITICAL", incidentUpdates=[first]
    )
    await say(
        alice,
        incident,
        "RESOLVED",
        description="Line 1\nhttps://a.example/?a=1&b=2",
        publicIncidentUpdateDate="2026-11-21T09:30:00Z",
    )
    later = {"publicIncidentUpdateDate": "2027-01-01T00:00:00Z"}
    await say(alice, incident, "MONITORING", description="Not yet.", **later)
    return str(incident["id"])


async def test_rss_has_what_rss_2_0_requires(site: Site, shop: str) -> None:
    answer = await site.get("/status/shop/feed.rss")
    root = ET.fromstring(answer.text)
    channel = root.find("channel")
    assert channel is not None
    items = channel.findall("item")

    assert answer.headers["content-type"].startswith("application/rss+xml")
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    assert channel.findtext("link") == HOME
    assert channel.findtext("title")
    assert channel.findtext("description")
    self_link = channel.find(f"{ATOM}link")
    assert self_link is not None
    assert (self_link.get("rel"), self_link.get("href")) == ("self", f"{HOME}/feed.rss")
    assert [one.findtext("link") for one in items] == [f"{HOME}#incident-{shop}"] * 2
    times = [parsedate_to_datetime(one.findtext("pubDate") or "") for one in items]
    assert times == [
        datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
        datetime(2026, 11, 21, 9, 0, tzinfo=UTC),
    ]
    guids = [one.find("guid") for one in items]
    assert {one.get("isPermaLink") for one in guids if one is not None} == {"false"}
    assert len({one.text for one in guids if one is not None}) == 2
    html = items[0].findtext("description") or ""
    assert html.startswith('Line 1<br><a href="https://a.example/?a=1&amp;b=2" rel=')
    assert "<script" not in (items[1].findtext("description") or "")


async def test_atom_has_what_rfc_4287_requires(site: Site, shop: str) -> None:
    answer = await site.get("/status/shop/feed.atom")
    root = ET.fromstring(answer.text)
    entries = root.findall(f"{ATOM}entry")

    assert root.tag == f"{ATOM}feed"
    for element in (root, *entries):
        for name in ("id", "title", "updated"):
            assert len(element.findall(ATOM + name)) == 1
        assert (element.findtext(f"{ATOM}id") or "").startswith("urn:uuid:")
        assert datetime.fromisoformat(element.findtext(f"{ATOM}updated") or "").tzinfo
    assert root.findtext(f"{ATOM}author/{ATOM}name")
    links = {one.get("rel"): one.get("href") for one in root.findall(f"{ATOM}link")}
    assert links == {"alternate": HOME, "self": f"{HOME}/feed.atom"}
    assert [one.findtext(f"{ATOM}updated") for one in entries] == [
        "2026-11-21T09:30:00Z",
        "2026-11-21T09:00:00Z",
    ]
    assert (entries[0].findtext(f"{ATOM}title") or "").endswith(": resolved")
    content = entries[1].find(f"{ATOM}content")
    assert content is not None
    assert content.get("type") == "html"
    assert (content.text or "").startswith("&lt;script&gt;")


async def test_json_feed_has_what_its_version_1_1_requires(site: Site, shop: str) -> None:
    feed = json.loads((await site.get("/status/shop/feed.json")).text)

    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert (feed["home_page_url"], feed["feed_url"]) == (HOME, f"{HOME}/feed.json")
    assert [one["content_text"] for one in feed["items"]] == [
        "Line 1\nhttps://a.example/?a=1&b=2",
        HOSTILE,
    ]
    assert {one["url"] for one in feed["items"]} == {f"{HOME}#incident-{shop}"}
    assert all(datetime.fromisoformat(one["date_published"]).tzinfo for one in feed["items"])


async def test_a_feed_without_incidents_is_one_too(site: Site, alice: ApiUser) -> None:
    await a_page(alice)

    root = ET.fromstring((await site.get("/status/shop/feed.atom")).text)

    updated = datetime.fromisoformat(root.findtext(f"{ATOM}updated") or "")
    assert abs(updated.timestamp() * 1000 - START_MS) > 0
    assert root.findall(f"{ATOM}entry") == []
