"""What may be chosen in fields that name other resources."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from service.bundles import bundles
from service.bundles.model import BundleRow
from service.web.alerts import alert_words
from service.web.forms.field_schema import Option
from service.web.visit import Visit
from service.web.words import format_bytes, format_moment

_PAGE: Final = 100
_MOST_BUNDLES: Final = 200
_MOST_PAGES: Final = 20
"""A menu of more is none; what is stored and not in it stays chosen."""


async def list_locations(visit: Visit) -> tuple[Option, ...]:
    """Private locations, as checks name them."""
    # They come all at once.
    answer = await visit.look("GET /v1/private-locations")
    return tuple(Option(one["slugName"], str(one["name"])) for one in answer.body)


async def list_groups(visit: Visit) -> tuple[Option, ...]:
    """Check groups; those with one name are told apart."""
    return _distinguish(_named(await _list(visit, "/v1/check-groups")))


async def list_bundles(visit: Visit) -> tuple[Option, ...]:
    """Code bundles, the newest first."""
    found = await visit.read(
        lambda c: bundles.list_newest(c, visit.account_id, limit=_MOST_BUNDLES)
    )
    return tuple(Option(one.sha256, _describe_bundle(one)) for one in found)


async def list_snippets(visit: Visit) -> tuple[Option, ...]:
    """Snippets of code."""
    return _named(await _list(visit, "/v1/snippets"))


async def list_channels(visit: Visit) -> tuple[Option, ...]:
    """Alert channels, by what tells them apart."""
    found = await _list(visit, "/v1/alert-channels")
    return tuple(Option(one["id"], _label_channel(one)) for one in found)


async def list_automatic_subscriptions(visit: Visit) -> list[dict[str, Any]]:
    """Subscriptions to the channels that new checks subscribe to by themselves."""
    found = await _list(visit, "/v1/alert-channels")
    return [
        {"alertChannelId": one["id"], "activated": True} for one in found if one["autoSubscribe"]
    ]


async def list_services(visit: Visit) -> tuple[Option, ...]:
    """Services of status pages."""
    # Their list has no numbered pages; this way they come all at once.
    answer = await visit.look("GET /v1/status-pages/services?paginated=false")
    return _named(answer.body["entries"])


def name_channel(channel: Mapping[str, Any]) -> str:
    """What people call a channel, as the API shows it."""
    return alert_words.name_channel(channel["type"], channel["id"], channel["config"])


def _label_channel(channel: Mapping[str, Any]) -> str:
    name, kind = name_channel(channel), alert_words.name_kind(channel["type"], channel["config"])
    return name if name.startswith(kind) else f"{name} ({kind})"


def _describe_bundle(bundle: BundleRow) -> str:
    size, sent = format_bytes(bundle.size_bytes), format_moment(bundle.created_ms)
    return f"{bundle.sha256[:12]}, {size}, uploaded {sent}"


def _distinguish(options: Sequence[Option]) -> tuple[Option, ...]:
    """Each with a label of its own, on one line: whoever types one means one."""
    plain = [replace(one, label=" ".join(one.label.split())) for one in options]
    count = Counter(one.label for one in plain)
    return tuple(
        one if count[one.label] == 1 else replace(one, label=f"{one.label} ({one.key})")
        for one in plain
    )


def _named(found: Sequence[Mapping[str, Any]]) -> tuple[Option, ...]:
    return tuple(Option(one["id"], str(one["name"])) for one in found)


async def _list(visit: Visit, path: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for number in range(1, _MOST_PAGES + 1):
        answer = await visit.look(f"GET {path}?limit={_PAGE}&page={number}")
        if answer.is_error:
            break
        page = answer.body["entries"] if isinstance(answer.body, dict) else answer.body
        found += page
        if len(page) < _PAGE:
            break
    return found
