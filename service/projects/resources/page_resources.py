"""Status pages of a project, and their services.

A component of a page of the third form is a service if it can be touched, and a card if it is a
group of others: its page has it then, and it is no thing of its own.
"""

from collections.abc import Mapping
from typing import Any, Final

from service.db.ids import new_id
from service.projects.resources.resource_type import (
    ResourceType,
    View,
    Work,
    look,
    reader,
)
from service.status_pages import actions, page_changes, service_changes
from service.status_pages.model import ServiceWrite, StatusPage
from service.status_pages.schemas import StatusPageWrite


def _view_service(work: Work, service_id: str) -> View | None:
    def find() -> View:
        row = actions.find_service(work.connection, work.scope.account_id, service_id)
        return {"name": row.name}

    return look(find)


def _replace_service(work: Work, service_id: str, body: Any) -> str:
    service_changes.rename(work.connection, work.scope, service_id, body)
    return service_id


SERVICES: Final = ResourceType(
    placeholder="reference",
    is_number=False,
    read=reader(ServiceWrite),
    view=_view_service,
    create=lambda work, body: service_changes.create(work.connection, work.scope, body).id,
    replace=_replace_service,
    delete=lambda work, one: service_changes.delete(work.connection, work.scope, one),
)


def _view_page(work: Work, page_id: str) -> View | None:
    def find() -> View:
        page = actions.find(work.connection, work.scope.account_id, page_id)
        return {
            "name": page.name,
            "url": page.url,
            "customDomain": page.custom_domain,
            "isPrivate": page.is_private,
            **page.look,
            "cards": [
                {"name": card.name, "services": [one.id for one in card.services]}
                for card in page.cards
            ],
        }

    return look(find)


def _create_page(work: Work, body: StatusPageWrite) -> str:
    key = page_changes.new_key(work.pepper)
    page, _ = page_changes.create(work.connection, work.scope, body, key=key)
    return page.id


def _replace_page(work: Work, page_id: str, body: StatusPageWrite) -> str:
    before = actions.find(work.connection, work.scope.account_id, page_id)
    key = page_changes.new_key(work.pepper)
    body = _name_cards(body, before)
    page_changes.replace(work.connection, work.scope, page_id, body, key=key)
    return page_id


def _name_cards(body: StatusPageWrite, before: StatusPage) -> StatusPageWrite:
    """Cards with the ids of those of the same name: code has no ids for them."""
    known: dict[str, list[str]] = {}
    for card in before.cards:
        known.setdefault(card.name, []).append(card.id)

    def find_id(name: str, own: str | None) -> str | None:
        return own or (known[name].pop(0) if known.get(name) else None)

    cards = [one.model_copy(update={"id": find_id(one.name, one.id)}) for one in body.cards]
    return body.model_copy(update={"cards": cards})


PAGES: Final = ResourceType(
    placeholder="reference",
    is_number=False,
    read=reader(StatusPageWrite),
    view=_view_page,
    create=_create_page,
    replace=_replace_page,
    delete=lambda work, one: page_changes.delete(work.connection, work.scope, one),
)


def _read_as_sent(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return payload


PARTS: Final = ResourceType(
    placeholder="reference",
    is_number=False,
    read=_read_as_sent,
    view=lambda _work, _id: {},
    create=lambda work, _body: new_id(work.scope.now_ms),
    replace=lambda _work, one, _body: one,
    delete=lambda _work, _id: None,
)
"""What is part of other resources: assignments, rules, groups of components."""
