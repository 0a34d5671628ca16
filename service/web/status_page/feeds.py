"""What happened, for programs that read feeds: RSS 2.0, Atom (RFC 4287) and JSON Feed 1.1.

Each update is an entry of its own, since readers show an entry once and do not come back to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, register_namespace, tostring

import msgspec

from service.http.times import format_time
from service.incidents.model import Incident
from service.incidents.rules import list_public
from service.status_pages.model import StatusPage
from service.web.rendering import link_addresses
from service.web.status_page.page_view import STATUS
from service.web.status_page.visitor_text import only_xml

MOST_ENTRIES: Final = 50
_ATOM: Final = "http://www.w3.org/2005/Atom"
_JSON_FEED: Final = "https://jsonfeed.org/version/1.1"
register_namespace("atom", _ATOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An update of an incident."""

    id: str
    title: str
    html: str
    text: str
    severity: str
    link: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A page as a feed."""

    page: StatusPage
    home: str
    """The address of the page."""
    address: str
    """The address of the feed itself."""
    entries: tuple[FeedEntry, ...]
    """The newest first."""

    @property
    def changed_ms(self) -> int:
        """When something was said for the last time."""
        if self.entries:
            return self.entries[0].at_ms
        return self.page.updated_ms or self.page.created_ms

    @property
    def description(self) -> str:
        """What it is about."""
        return str(self.page.look.get("description") or f"Incidents of {self.page.name}")


def build_feed(
    page: StatusPage, incidents: Sequence[Incident], *, home: str, address: str, now_ms: int
) -> Feed:
    """The newest updates of a page's incidents."""
    entries = [
        FeedEntry(
            id=f"urn:uuid:{update.id}",
            title=f"{incident.name}: {STATUS[update.status].lower()}",
            html=str(link_addresses(update.description)).replace("\n", "<br>"),
            text=update.description,
            severity=incident.severity.value.lower(),
            link=f"{home}#incident-{incident.id}",
            at_ms=update.public_ms,
        )
        for incident in incidents
        for update in list_public(incident.updates, now_ms=now_ms)
    ]
    entries.sort(key=lambda one: (one.at_ms, one.id), reverse=True)
    newest = tuple(entries[:MOST_ENTRIES])
    return Feed(page=page, home=home, address=address, entries=newest)


def write_rss(feed: Feed) -> bytes:
    """The feed as RSS 2.0."""
    root = Element("rss", {"version": "2.0"})
    channel = SubElement(root, "channel")
    _add(channel, "title", feed.page.name)
    _add(channel, "link", feed.home)
    _add(channel, "description", feed.description)
    _add(channel, "language", "en")
    _add(channel, "lastBuildDate", _format_rfc_822(feed.changed_ms))
    link = {"rel": "self", "type": "application/rss+xml", "href": only_xml(feed.address)}
    SubElement(channel, f"{{{_ATOM}}}link", link)
    for one in feed.entries:
        item = SubElement(channel, "item")
        _add(item, "title", one.title)
        _add(item, "link", one.link)
        _add(item, "guid", one.id, isPermaLink="false")
        _add(item, "pubDate", _format_rfc_822(one.at_ms))
        _add(item, "category", one.severity)
        _add(item, "description", one.html)
    return _write(root)


def write_atom(feed: Feed) -> bytes:
    """The feed as Atom."""
    root = Element("feed", {"xmlns": _ATOM, "xml:lang": "en"})
    _add(root, "id", f"urn:uuid:{feed.page.id}")
    _add(root, "title", feed.page.name)
    _add(root, "subtitle", feed.description)
    _add(root, "updated", _format_rfc_3339(feed.changed_ms))
    _add(SubElement(root, "author"), "name", feed.page.name)
    _add(root, "link", "", rel="alternate", type="text/html", href=feed.home)
    _add(root, "link", "", rel="self", type="application/atom+xml", href=feed.address)
    for one in feed.entries:
        entry = SubElement(root, "entry")
        _add(entry, "id", one.id)
        _add(entry, "title", one.title)
        _add(entry, "updated", _format_rfc_3339(one.at_ms))
        _add(entry, "published", _format_rfc_3339(one.at_ms))
        _add(entry, "link", "", rel="alternate", type="text/html", href=one.link)
        _add(entry, "category", "", term=one.severity)
        _add(entry, "content", one.html, type="html")
    return _write(root)


def write_json_feed(feed: Feed) -> bytes:
    """The feed as JSON Feed."""
    items: list[dict[str, Any]] = [
        {
            "id": one.id,
            "url": one.link,
            "title": one.title,
            "content_html": one.html,
            "content_text": one.text,
            "date_published": format_time(one.at_ms),
            "tags": [one.severity],
        }
        for one in feed.entries
    ]
    content = {
        "version": _JSON_FEED,
        "title": feed.page.name,
        "home_page_url": feed.home,
        "feed_url": feed.address,
        "description": feed.description,
        "language": "en",
        "items": items,
    }
    return msgspec.json.encode(content)


def _add(parent: Element, name: str, text: str, **attributes: str) -> None:
    made = SubElement(parent, name, {key: only_xml(value) for key, value in attributes.items()})
    made.text = only_xml(text)


def _write(root: Element) -> bytes:
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def _format_rfc_822(at_ms: int) -> str:
    return format_datetime(_datetime(at_ms), usegmt=True)


def _format_rfc_3339(at_ms: int) -> str:
    return f"{_datetime(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def _datetime(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
