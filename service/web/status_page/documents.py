"""A status page as the files that visitors load, each made once."""

import asyncio
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.status_pages.public import MOST_INCIDENTS, render_public
from service.web.rendering import Renderer
from service.web.states import State
from service.web.static_files import assets
from service.web.status_page.colours import write_theme
from service.web.status_page.feeds import Feed, build_feed, write_atom, write_json_feed, write_rss
from service.web.status_page.page_view import PageView, build_view
from service.web.status_page.pictures import Picture, PictureAddress, find_origin, read_picture
from service.web.status_page.snapshot import Snapshot
from service.web.status_page.visitor_text import format_date, format_time_of_day
from service.web.words import format_duration

PAGE: Final = "index.html"
SHEET: Final = "theme.css"
ICON: Final = "icon.svg"
ARCHIVE: Final = "export.zip"
_FEEDS: Final[Mapping[str, tuple[str, Callable[[Feed], bytes]]]] = {
    "feed.rss": ("application/rss+xml", write_rss),
    "feed.atom": ("application/atom+xml", write_atom),
    "feed.json": ("application/feed+json", write_json_feed),
}
_MOST_DOCUMENTS: Final = 32
_MOST_FEEDS: Final = 12
"""Kept of one page: whoever asks under many names has feeds made again, and nothing else."""
_PACKED_FROM_BYTES: Final = 256
_MINUTE_S: Final = 60
_OLD_S: Final = 60
"""From this age on, a copy that cannot be renewed says how old it is."""
_ICONS: Final[Mapping[State, str]] = {
    State.PASSING: '<circle cx="16" cy="16" r="12" fill="#3f9b5c"/>',
    State.DEGRADED: '<path d="M16 3 31 29H1z" fill="#bd7f1c"/>',
    State.FAILING: '<path d="M4 4h24v24H4z" fill="#c73a36"/>',
}
_TOPS: Final[Mapping[State, int]] = {
    State.PASSING: 8,
    State.DEGRADED: 4,
    State.FAILING: 0,
    State.UNKNOWN: 24,
}
"""Where the bars of days begin below the upper edge: states differ by more than their hue."""
_TIME_IN_ARCHIVE: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is looked at."""

    home: str
    """The page's own path."""
    base: str
    """What the paths of its other files begin with."""
    origin: str
    """What the addresses in feeds begin with: `https://status.example.com`."""
    is_file: bool = False
    """Whether files are written that no service stands behind."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file."""

    media_type: str
    content: bytes
    packed: bytes
    """The content as gzip; empty where that is not smaller."""
    etag: str
    policy: str

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        return len(self.content) + len(self.packed)


def make_document(media_type: str, content: bytes, *, policy: str) -> Document:
    """A file, packed."""
    packed = b""
    if len(content) >= _PACKED_FROM_BYTES:
        packed = gzip.compress(content, 6, mtime=0)
    if len(packed) >= len(content):
        packed = b""
    etag = f'W/"{hashlib.sha256(policy.encode() + content).hexdigest()[:32]}"'
    return Document(media_type, content, packed, etag, policy)


def respond(
    request: Request, document: Document, *, status: int = 200, headers: Mapping[str, str]
) -> Response:
    """A file as a response, or that nothing has changed since the browser loaded it."""
    sent = {
        "etag": document.etag,
        "content-security-policy": document.policy,
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        **headers,
    }
    if status == 200 and document.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=sent)
    content = document.content
    if document.packed and "gzip" in request.headers.get("accept-encoding", ""):
        content = document.packed
        sent["content-encoding"] = "gzip"
    return Response(content, status, headers=sent, media_type=document.media_type)


def write_policy(*origins: str) -> str:
    """What a page may load: no script at all, and pictures from these origins."""
    pictures = " ".join(dict.fromkeys(("'self'", "data:", *origins)))
    return (
        f"default-src 'none'; style-src 'self'; img-src {pictures}; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )


FILE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""For a file that is opened by itself: a picture may be an SVG that somebody sent."""


@cache
def usual_sheet() -> bytes:
    """The style sheet of a page without colours of its own."""
    return assets()["tokens.css"].content + assets()["status_page.css"].content


@cache
def _usual_digest() -> str:
    return _digest(usual_sheet())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def usual_frame(place: Place) -> dict[str, Any]:
    """What the template around a page needs where there is no status page."""
    return {
        "name": "",
        "theme": None,
        "base": place.base,
        "home": place.home,
        "sheet": f"{place.base}{SHEET}?{_usual_digest()}",
        "logo": "",
        "favicon": "data:,",
        "redirect": "",
        "is_private": True,
        "policy": write_policy(),
    }


class PageDocuments:
    """The files of one page as it was at one time."""

    def __init__(self, snapshot: Snapshot, renderer: Renderer, *, takes_subscribers: bool) -> None:
        self.snapshot = snapshot
        self._renderer = renderer
        self._takes_subscribers = takes_subscribers
        self._kept: dict[tuple[object, ...], Document] = {}
        self._feeds: dict[tuple[object, ...], Document] = {}
        """By the name, which whoever asks can choose, under which they were asked for, as well."""
        self._making = asyncio.Lock()
        look = snapshot.page.look
        self._logo = read_picture(look.get("logo"))
        self._favicon = read_picture(look.get("favicon"))
        self._sheet = usual_sheet() + write_theme(look.get("themeColors")).encode()
        self.sheet_digest = _digest(self._sheet)
        """What the address of its style sheet ends with."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, nearly."""
        sent = sum(len(one.content) for one in self._pictures().values())
        said = sum(len(u.description) for one in self.snapshot.incidents for u in one.updates)
        made = (*self._kept.values(), *self._feeds.values())
        return sent + said + sum(one.size_bytes for one in made)

    async def find(self, name: str, place: Place, *, age_s: float = 0) -> Document | None:
        """A file. None: the page has none of this name.

        `age_s`: how old a page is that may be out of date.
        """
        is_old = name == PAGE and age_s >= _OLD_S
        minutes = int(age_s // _MINUTE_S) if is_old else 0
        if name == ARCHIVE:  # for whoever exports, who names its address: not worth the memory
            return await asyncio.to_thread(self._make, name, place, minutes)
        # Feeds alone say under which name they are reached.
        kept, most = (self._kept, _MOST_DOCUMENTS)
        key: tuple[object, ...] = (name, place.home, place.base, minutes)
        if name in _FEEDS:
            kept, most, key = (self._feeds, _MOST_FEEDS, (name, place))
        if (found := kept.get(key)) is not None:
            return found
        async with self._making:
            if (found := kept.get(key)) is not None:
                return found
            made = await asyncio.to_thread(self._make, name, place, minutes)
            if made is not None:
                if len(kept) >= most:
                    del kept[next(iter(kept))]
                kept[key] = made
            return made

    def _make(self, name: str, place: Place, minutes: int = 0) -> Document | None:
        match name:
            case "index.html":
                content = self._page(place, minutes).encode()
                return self._document("text/html; charset=utf-8", content)
            case "theme.css":
                return self._document("text/css; charset=utf-8", self._sheet)
            case "icon.svg":
                return self._document("image/svg+xml", self._icon(), policy=FILE_POLICY)
            case "status.json":
                return self._document("application/json", self._json())
            case "export.zip":
                return self._document("application/zip", self._archive(place))
        return self._make_feed(name, place) or self._make_picture(name)

    def _make_feed(self, name: str, place: Place) -> Document | None:
        if name not in _FEEDS:
            return None
        media_type, write = _FEEDS[name]
        return self._document(media_type, write(self._feed(name, place)))

    def _make_picture(self, name: str) -> Document | None:
        found = self._pictures().get(name)
        if found is None:
            return None
        return self._document(found.media_type, found.content, policy=FILE_POLICY)

    def _document(self, media_type: str, content: bytes, *, policy: str = "") -> Document:
        return make_document(media_type, content, policy=policy or self._policy())

    def _policy(self) -> str:
        """What its pages may load."""
        addresses = [one for one in (self._logo, self._favicon) if isinstance(one, PictureAddress)]
        return write_policy(*(one.origin for one in addresses))

    def _pictures(self) -> dict[str, Picture]:
        named = {"logo": self._logo, "favicon": self._favicon}
        return {
            f"{name}.{one.ending}": one for name, one in named.items() if isinstance(one, Picture)
        }

    def _page(self, place: Place, minutes: int) -> str:
        taken_ms = self.snapshot.taken_ms
        view = self._view()
        old = f"{format_time_of_day(taken_ms)}, {format_duration(minutes * 60_000)} ago"
        exported = f"{format_date(taken_ms)}, {format_time_of_day(taken_ms)}"
        return self._renderer.render(
            "status_page/page.html",
            view=view,
            frame=self.frame(place),
            old=old if minutes else "",
            exported=exported if place.is_file else "",
            takes_subscribers=self._takes_subscribers and not place.is_file,
            tops=_TOPS,
        )

    def frame(self, place: Place) -> dict[str, Any]:
        """What the template around each page of it needs."""
        page = self.snapshot.page
        redirect = str(page.look.get("redirectTo") or "")
        theme = str(page.look.get("defaultTheme") or "AUTO")
        return {
            "name": page.name,
            "theme": theme.lower() if theme in ("LIGHT", "DARK") else None,
            "base": place.base,
            "home": place.home,
            "sheet": f"{place.base}{SHEET}?{self.sheet_digest}",
            "logo": self._link("logo", self._logo, place),
            "favicon": self._link("favicon", self._favicon, place) or f"{place.base}{ICON}",
            "redirect": redirect if find_origin(redirect) else "",
            "is_private": page.is_private,
            "policy": self._policy(),
        }

    def _link(self, name: str, picture: Picture | PictureAddress | None, place: Place) -> str:
        if isinstance(picture, PictureAddress):
            return picture.address
        return "" if picture is None else f"{place.base}{name}.{picture.ending}"

    def _view(self) -> PageView:
        taken = self.snapshot
        return build_view(taken.page, taken.incidents, taken.maintenance, now_ms=taken.taken_ms)

    def _icon(self) -> bytes:
        shape = _ICONS[self._view().state]
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{shape}</svg>'
        return svg.encode()

    def _json(self) -> bytes:
        taken = self.snapshot
        newest = taken.incidents[:MOST_INCIDENTS]
        shown = render_public(taken.page, newest, taken.maintenance, now_ms=taken.taken_ms)
        return msgspec.json.encode(shown)

    def _feed(self, name: str, place: Place) -> Feed:
        beginning = place.origin + ("/" if place.is_file else "")
        return build_feed(
            self.snapshot.page,
            self.snapshot.incidents,
            home=beginning + place.home,
            address=beginning + place.base + name,
            now_ms=self.snapshot.taken_ms,
        )

    def _archive(self, place: Place) -> bytes:
        """Every file of the page as ZIP."""
        names = [PAGE, SHEET, ICON, "status.json", *_FEEDS, *self._pictures()]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                made = self._make(name, place)
                if made is not None:
                    entry = zipfile.ZipInfo(name, _TIME_IN_ARCHIVE)
                    archive.writestr(entry, made.content, zipfile.ZIP_DEFLATED)
        return packed.getvalue()
