"""What an account has that a project can take over, and what its code says."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.alert_channels.model import ChannelRow
from service.checks import actions as checks
from service.groups import actions as groups
from service.locations import actions as locations
from service.maintenance import actions as maintenance
from service.projects import rules as types
from service.projects.imports.model import Candidate, CodeResource, Planned
from service.projects.imports.rules import build_payload, has_code, name_by_id, name_link
from service.projects.resources.registry import TYPES
from service.projects.resources.resource_type import View, Work
from service.snippets import actions as snippets
from service.status_pages import actions as status_pages

_MOST: Final = 10_000
"""How many status pages, windows and snippets are looked through."""
_ASSIGNMENTS: Final = {types.CHECK: types.CHECK_ASSIGNMENT, types.GROUP: types.GROUP_ASSIGNMENT}
_SNIPPETS: Final = ("setupSnippetId", "tearDownSnippetId")
_SCRIPTS: Final = ("script", "localSetupScript", "localTearDownScript")


def list_candidates(connection: Connection, account_id: str) -> Iterator[Candidate]:
    """All things of an account, type by type, the oldest first."""

    def candidate(kind: str, physical_id: object, name: str) -> Candidate:
        return Candidate(type=kind, physical_id=str(physical_id), name=name)

    for location in locations.list_all(connection, account_id):
        yield candidate(types.LOCATION, location.id, location.slug_name)
    for service in status_pages.list_all_services(connection, account_id):
        yield candidate(types.SERVICE, service.id, service.name)
    for channel in alert_channels.list_all(connection, account_id):
        yield candidate(types.CHANNEL, channel.id, _name_channel(channel))
    for group in groups.list_by_id(connection, account_id).values():
        yield candidate(types.GROUP, group.id, group.name)
    for check in checks.list_names(connection, account_id):
        yield candidate(types.CHECK, check.id, check.name)
    for page in status_pages.list_all(connection, account_id, limit=_MOST):
        yield candidate(types.PAGE, page.id, page.name)
    for window in maintenance.list_all(connection, account_id, limit=_MOST):
        yield candidate(types.WINDOW, window.id, window.name)


def _name_channel(channel: ChannelRow) -> str:
    return f"{channel.type.value}-{channel.config.get('name') or channel.id}"


def view_all(work: Work, planned: Iterable[Planned]) -> dict[Planned, View]:
    """The things that there is code for, as they are."""
    views = {}
    for one in planned:
        view = TYPES[one.type].view(work, one.physical_id)
        if view is not None and has_code(one.type, view):
            views[one] = view
    return views


def build_code(views: Mapping[Planned, View]) -> Iterator[CodeResource]:
    """The things with what their code says."""
    for one, view in views.items():
        physical_id = TYPES[one.type].read_id(one.physical_id)
        yield CodeResource(planned=one, payload=build_payload(one.type, physical_id, view))


def build_links(
    connection: Connection, account_id: str, views: Mapping[Planned, View], named: Iterable[Planned]
) -> Iterator[CodeResource]:
    """What joins checks and groups with channels and locations.

    `named`: what has a name in the project's code; other things are called by their ids.
    """
    names = {(one.type, one.physical_id): one.logical_id for one in named}

    def name(kind: str, physical_id: str) -> str:
        return names.get((kind, physical_id)) or name_by_id(kind, physical_id)

    slugs = locations.list_ids_by_slug(connection, account_id)
    for owner, view in views.items():
        for slug in view.get("privateLocations") or ():
            if (kind := _ASSIGNMENTS.get(owner.type)) and slug in slugs:
                location_id = slugs[slug]
                title = name_link(kind, owner, name(types.LOCATION, location_id))
                payload = {"privateLocationId": location_id, **_owner_field(owner)}
                yield CodeResource(
                    planned=Planned(type=kind, logical_id=title, physical_id=title), payload=payload
                )
    yield from _build_subscriptions(connection, views.keys(), name)


def _build_subscriptions(
    connection: Connection, owners: Collection[Planned], name: Any
) -> Iterator[CodeResource]:
    by_check = {one.physical_id: one for one in owners if one.type == types.CHECK}
    by_group = {int(one.physical_id): one for one in owners if one.type == types.GROUP}
    rows = alert_channels.list_subscriptions(connection, check_ids=by_check, group_ids=by_group)
    for row in rows:
        # Code lists the channels that get alerts, and has no word for one that gets none.
        if not row.activated:
            continue
        owner = by_check[row.check_id] if row.check_id else by_group[row.group_id or 0]
        title = name_link(types.SUBSCRIPTION, owner, name(types.CHANNEL, str(row.channel_id)))
        planned = Planned(type=types.SUBSCRIPTION, logical_id=title, physical_id=str(row.id))
        payload = {"alertChannelId": row.channel_id, **_owner_field(owner), "activated": True}
        yield CodeResource(planned=planned, payload=payload)


def _owner_field(owner: Planned) -> dict[str, Any]:
    field = "checkId" if owner.type == types.CHECK else "groupId"
    return {field: TYPES[owner.type].read_id(owner.physical_id)}


def find_snippets(
    connection: Connection, account_id: str, views: Sequence[View]
) -> tuple[dict[str, Any], ...]:
    """The snippets that scripts use, and those that these use."""
    wanted = {view[field] for view in views for field in _SNIPPETS if view.get(field)}
    texts = [str(view[field]) for view in views for field in _SCRIPTS if view.get(field)]
    left = list(snippets.list_all(connection, account_id, limit=_MOST))
    found: list[dict[str, Any]] = []
    while used := [
        one for one in left if one.id in wanted or any(one.name in text for text in texts)
    ]:
        left = [one for one in left if one not in used]
        found += [{"id": one.id, "name": one.name, "script": one.script} for one in used]
        texts = [one.script for one in used]
    return tuple(found)
