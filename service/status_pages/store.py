"""SQL of services, status pages, cards and keys."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from service.db.engine import announce
from service.db.tables.status_pages import (
    status_card_service,
    status_page,
    status_page_card,
    status_page_key,
    status_service,
)
from service.incidents.model import StatusChanged
from service.status_pages.model import Card, PageKey, ServiceRow, StatusPage

_SERVICES: Final[Select[Any]] = select(status_service).order_by(status_service.c.id)
_PAGES: Final[Select[Any]] = select(status_page).order_by(status_page.c.id)
_CARDS: Final[Select[Any]] = select(status_page_card).order_by(status_page_card.c.position)
_KEYS: Final[Select[Any]] = select(status_page_key).order_by(status_page_key.c.id)
_ON_CARDS: Final[Select[Any]] = (
    select(*status_service.c, status_card_service.c.card_id)
    .join_from(status_card_service, status_service)
    .order_by(status_card_service.c.position)
)


def find_services(
    connection: Connection, account_id: str, service_ids: Sequence[str]
) -> dict[str, ServiceRow]:
    """Those of the services that the account has, by id."""
    query = _SERVICES.where(
        status_service.c.account_id == account_id, status_service.c.id.in_(service_ids)
    )
    return {row.id: _read_service(row) for row in connection.execute(query)}


def list_services(
    connection: Connection, account_id: str, *, limit: int | None, after: str | None
) -> tuple[ServiceRow, ...]:
    """The account's services, oldest first; without a limit, all of them."""
    query = _SERVICES.where(status_service.c.account_id == account_id).limit(limit)
    if after is not None:
        query = query.where(status_service.c.id > after)
    return tuple(_read_service(row) for row in connection.execute(query))


def add_service(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new service."""
    connection.execute(insert(status_service).values(**values))


def change_service(connection: Connection, service_id: str, values: Mapping[str, Any]) -> None:
    """Change a service."""
    where = status_service.c.id == service_id
    connection.execute(update(status_service).where(where).values(**values))
    announce(connection, StatusChanged())


def remove_service(connection: Connection, service_id: str) -> None:
    """Forget a service; cards and incidents lose it."""
    connection.execute(delete(status_service).where(status_service.c.id == service_id))
    announce(connection, StatusChanged())


def find(connection: Connection, account_id: str, page_id: str) -> StatusPage | None:
    """One status page. None: the account has none with this id."""
    query = _PAGES.where(status_page.c.id == page_id, status_page.c.account_id == account_id)
    return _find(connection, query)


def find_by_url(connection: Connection, url: str) -> StatusPage | None:
    """The status page of an address. None: there is none."""
    return _find(connection, _PAGES.where(status_page.c.url == url))


def find_by_domain(connection: Connection, domain: str) -> StatusPage | None:
    """The status page of a domain. None: there is none."""
    return _find(connection, _PAGES.where(status_page.c.custom_domain == domain))


def list_domains(connection: Connection) -> dict[str, str]:
    """The last parts of the addresses of pages by their own domains."""
    query = select(status_page.c.custom_domain, status_page.c.url).where(
        status_page.c.custom_domain.is_not(None)
    )
    return {row.custom_domain: row.url for row in connection.execute(query)}


def find_all(connection: Connection, page_ids: Sequence[str]) -> dict[str, StatusPage]:
    """Status pages by id."""
    found = _read_all(connection, _PAGES.where(status_page.c.id.in_(page_ids)))
    return {one.id: one for one in found}


def list_page(
    connection: Connection, account_id: str, *, limit: int, after: str | None
) -> tuple[StatusPage, ...]:
    """The account's status pages, oldest first."""
    query = _PAGES.where(status_page.c.account_id == account_id).limit(limit)
    if after is not None:
        query = query.where(status_page.c.id > after)
    return _read_all(connection, query)


def list_ids_showing(connection: Connection, service_ids: Sequence[str]) -> list[str]:
    """The ids of the pages with a card that shows one of the services."""
    query = (
        select(status_page_card.c.page_id)
        .distinct()
        .join_from(status_page_card, status_card_service)
        .where(status_card_service.c.service_id.in_(service_ids))
    )
    return list(connection.execute(query).scalars())


def add(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new status page."""
    connection.execute(insert(status_page).values(**values))
    announce(connection, StatusChanged())


def change(connection: Connection, page_id: str, values: Mapping[str, Any]) -> None:
    """Change a status page."""
    connection.execute(update(status_page).where(status_page.c.id == page_id).values(**values))
    announce(connection, StatusChanged())


def remove(connection: Connection, page_id: str) -> None:
    """Forget a status page, its cards, keys and subscriptions."""
    connection.execute(delete(status_page).where(status_page.c.id == page_id))
    announce(connection, StatusChanged())


def replace_cards(
    connection: Connection,
    page_id: str,
    cards: Sequence[Mapping[str, Any]],
    service_ids: Sequence[Sequence[str]],
) -> None:
    """Give the page these cards; `service_ids` are those of each card."""
    connection.execute(delete(status_page_card).where(status_page_card.c.page_id == page_id))
    if cards:
        connection.execute(insert(status_page_card), list(cards))
    shown = [
        {"card_id": card["id"], "service_id": service_id, "position": position}
        for card, own in zip(cards, service_ids, strict=True)
        for position, service_id in enumerate(own)
    ]
    if shown:
        connection.execute(insert(status_card_service), shown)
    announce(connection, StatusChanged())


def add_key(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new key."""
    connection.execute(insert(status_page_key).values(**values))
    announce(connection, StatusChanged())


def remove_keys(connection: Connection, page_id: str) -> None:
    """Forget all keys of a page."""
    connection.execute(delete(status_page_key).where(status_page_key.c.page_id == page_id))
    announce(connection, StatusChanged())


def opens(connection: Connection, page_id: str, key_hash: bytes) -> bool:
    """Whether a key is one of the page's."""
    query = select(status_page_key.c.id).where(
        status_page_key.c.page_id == page_id, status_page_key.c.hash == key_hash
    )
    return connection.execute(query).first() is not None


def list_key_hashes(connection: Connection, page_id: str) -> frozenset[bytes]:
    """The hashes of the page's keys."""
    query = select(status_page_key.c.hash).where(status_page_key.c.page_id == page_id)
    return frozenset(connection.execute(query).scalars())


def _find(connection: Connection, query: Select[Any]) -> StatusPage | None:
    found = _read_all(connection, query)
    return found[0] if found else None


def _read_all(connection: Connection, query: Select[Any]) -> tuple[StatusPage, ...]:
    rows = connection.execute(query).all()
    page_ids = [row.id for row in rows]
    cards, keys = _read_cards(connection, page_ids), defaultdict(list)
    for row in connection.execute(_KEYS.where(status_page_key.c.page_id.in_(page_ids))):
        key = PageKey(id=row.id, masked=row.masked, created_ms=row.created_ms)
        keys[row.page_id].append(key)
    return tuple(_read(row, cards.get(row.id, []), keys[row.id]) for row in rows)


def _read_cards(connection: Connection, page_ids: Sequence[str]) -> dict[str, list[Card]]:
    rows = connection.execute(_CARDS.where(status_page_card.c.page_id.in_(page_ids))).all()
    services = defaultdict(list)
    on_cards = _ON_CARDS.where(status_card_service.c.card_id.in_([row.id for row in rows]))
    for row in connection.execute(on_cards):
        services[row.card_id].append(_read_service(row))
    found = defaultdict(list)
    for row in rows:
        card = Card(
            id=row.id,
            name=row.name,
            created_ms=row.created_ms,
            updated_ms=row.updated_ms,
            services=tuple(services[row.id]),
        )
        found[row.page_id].append(card)
    return found


def _read(row: Row[Any], cards: Sequence[Card], keys: Sequence[PageKey]) -> StatusPage:
    return StatusPage(
        id=row.id,
        account_id=row.account_id,
        name=row.name,
        url=row.url,
        custom_domain=row.custom_domain,
        is_private=row.is_private,
        look=row.doc,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
        cards=tuple(cards),
        keys=tuple(keys),
    )


def _read_service(row: Row[Any]) -> ServiceRow:
    return ServiceRow(
        id=row.id,
        account_id=row.account_id,
        name=row.name,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
    )
