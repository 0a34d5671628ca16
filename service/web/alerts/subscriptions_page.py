"""`/channels/{id}/senders`: which checks and groups send to a channel."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.checks import actions as checks
from service.groups import actions as groups
from service.web.check.heading import describe_type
from service.web.form_data import read_form
from service.web.forms.choices import name_channel
from service.web.page_routing import Pages
from service.web.resources.channel_pages import Tested, send_test
from service.web.resources.listing import number_of
from service.web.visit import Visit

_PAGE: Final = 50
_BATCH: Final = 100
"""How many one transaction changes, so that others write in between."""
_SHOWN: Final = ("yes", "no")
_UNPROCESSABLE: Final = 422


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page, and what its forms are sent to."""
    path = "/channels/{id:int}/senders"
    test = pages.change(f"{path}/test", _test)
    return (pages.show(path, _show), pages.change(path, _change), test)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A check or a group that may send to the channel."""

    field: str
    """`checkId` or `groupId`: what a subscription names it by."""
    id: str | int
    name: str
    kind: str
    sends: bool
    via: str = ""
    """The group by which a check sends. Empty: it says so itself, or does not send."""

    @property
    def key(self) -> str:
        """What the form names it by."""
        return f"{self.field}:{self.id}"

    @property
    def is_check(self) -> bool:
        """Whether it is a check, not a group."""
        return self.field == "checkId"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    search: str
    show: str
    """Empty: those that send and those that do not."""
    page: int

    def matches(self, one: Sender) -> bool:
        """Whether the list has it."""
        is_shown = not self.show or one.sends == (self.show == "yes")
        return is_shown and self.search.casefold() in one.name.casefold()


def _read_asked(visit: Visit) -> _Asked:
    query = visit.request.query_params
    show = query.get("show", "")
    return _Asked(query.get("q", "").strip(), show if show in _SHOWN else "", number_of(visit))


async def _show(visit: Visit) -> Response:
    return await _list(visit, problem="")


async def _test(visit: Visit) -> Response:
    """Send a sample alert, and say what the other side answered."""
    return await _list(visit, problem="", tested=await send_test(visit, _id_of(visit)))


async def _change(visit: Visit) -> Response:
    """Send what was changed to the API, and nothing else."""
    form = await read_form(visit.request)
    _, senders = await _read(visit)
    before = {one.key: one for one in senders}
    ticked, was = set(form.all("on")), set(form.all("was"))
    if every := form.text("all"):
        wanted = every == "yes"
        asked = _read_asked(visit)
        # A group is chosen by hand: its checks are in the list as well.
        changed = {
            one.key: wanted
            for one in senders
            if asked.matches(one) and one.sends != wanted and (one.is_check or not wanted)
        }
    else:
        rows = [key for key in form.all("row") if (key in ticked) != (key in was)]
        changed = {key: key in ticked for key in rows if key in before}
    items = [{before[key].field: before[key].id, "activated": on} for key, on in changed.items()]
    for start in range(0, len(items), _BATCH):
        answer = await visit.call(
            f"PUT /v1/alert-channels/{_id_of(visit)}/subscriptions/bulk",
            {"subscriptions": items[start : start + _BATCH]},
        )
        if answer.is_error:
            return await _list(visit, problem=answer.message)
    asked = _read_asked(visit)
    query = f"q={quote(asked.search)}&show={asked.show}&page={asked.page}&changed={len(items)}"
    return visit.go(f"/channels/{_id_of(visit)}/senders?{query}")


def _id_of(visit: Visit) -> int:
    return int(visit.request.path_params["id"])


async def _list(visit: Visit, *, problem: str, tested: Tested | None = None) -> Response:
    channel, senders = await _read(visit)
    asked = _read_asked(visit)
    found = [one for one in senders if asked.matches(one)]
    start = (asked.page - 1) * _PAGE
    changed = visit.request.query_params.get("changed", "")
    return visit.page(
        "channel_senders.html",
        status=_UNPROCESSABLE if problem else 200,
        id=channel["id"],
        name=name_channel(channel),
        problem=problem,
        tested=tested,
        is_new="new" in visit.request.query_params,
        changed=int(changed) if changed.isascii() and changed[:9].isdecimal() else None,
        rows=found[start : start + _PAGE],
        found=len(found),
        found_on=_count(found),
        found_off=sum(not one.sends and one.is_check for one in found),
        total=sum(one.is_check for one in senders),
        sending=_count(senders),
        has_groups=any(not one.is_check for one in senders),
        search=asked.search,
        show=asked.show,
        page=asked.page,
        has_more=len(found) > start + _PAGE,
    )


def _count(senders: Sequence[Sender]) -> tuple[int, int]:
    """How many checks send, and how many groups."""
    kinds = [one.is_check for one in senders if one.sends]
    return sum(kinds), len(kinds) - sum(kinds)


async def _read(visit: Visit) -> tuple[Mapping[str, Any], Sequence[Sender]]:
    """The channel, and all that may send to it: groups, then checks, by name."""
    channel = await visit.find(f"/v1/alert-channels/{_id_of(visit)}")
    own = {one["checkId"] or one["groupId"]: one["activated"] for one in channel["subscriptions"]}

    def read(connection: Connection) -> list[Sender]:
        return list(_read_senders(connection, visit.account_id, own))

    found = await visit.read(read)
    return channel, sorted(found, key=lambda one: (one.is_check, one.name.casefold()))


def _read_senders(
    connection: Connection, account_id: str, own: Mapping[str | int, bool]
) -> Iterator[Sender]:
    via: dict[str, str] = {}
    for group in groups.list_by_id(connection, account_id).values():
        sends = own.get(group.id, False)
        yield Sender(field="groupId", id=group.id, name=group.name, kind="Group", sends=sends)
        if sends:
            members = checks.list_member_names(connection, account_id, group.id)
            via |= {one.id: group.name for one in members if one.id not in own}
    for check in checks.list_names(connection, account_id):
        yield Sender(
            field="checkId",
            id=check.id,
            name=check.name,
            kind=describe_type(check.type),
            sends=own.get(check.id, check.id in via),
            via=via.get(check.id, ""),
        )
