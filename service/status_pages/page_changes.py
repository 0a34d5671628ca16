"""Makes and changes status pages and their keys."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from service.accounts.keys import NewKey, Pepper
from service.db.ids import new_id
from service.http.errors import ConflictError
from service.status_pages import store
from service.status_pages.actions import find, require_services
from service.status_pages.model import KEY_PREFIX, Card, StatusPage
from service.status_pages.schemas import CardWrite, StatusPageWrite, build_look
from service.vault.encryption import Scope

NO_KEYS: Final[Mapping[str, str]] = {}


def create(
    connection: Connection, scope: Scope, body: StatusPageWrite, *, key: NewKey
) -> tuple[StatusPage, Mapping[str, str]]:
    """Make a status page; returns it, and the key that it got by the key's id.

    Raises:
        InvalidError: a card shows a service that is not there.
        ConflictError: another page has its address or domain.
    """
    page_id = new_id(scope.now_ms)
    _require_free(connection, body, but=None)
    values = _build_columns(body, is_private=bool(body.is_private))
    own = {"id": page_id, "account_id": scope.account_id}
    store.add(connection, {**values, **own, "created_ms": scope.now_ms, "updated_ms": None})
    _put_cards(connection, scope, page_id, body.cards, before=None)
    new_keys = _add_key(connection, scope, page_id, key) if body.is_private else NO_KEYS
    return find(connection, scope.account_id, page_id), new_keys


def replace(
    connection: Connection, scope: Scope, page_id: str, body: StatusPageWrite, *, key: NewKey
) -> tuple[StatusPage, Mapping[str, str]]:
    """Set a status page up anew; returns it, and the key that it got by the key's id.

    Raises:
        NotFoundError: the account has no such page.
        InvalidError: a card shows a service that is not there.
        ConflictError: another page has its address or domain.
    """
    before = find(connection, scope.account_id, page_id)
    _require_free(connection, body, but=page_id)
    is_private = before.is_private if body.is_private is None else body.is_private
    values = _build_columns(body, is_private=is_private)
    store.change(connection, page_id, {**values, "updated_ms": scope.now_ms})
    _put_cards(connection, scope, page_id, body.cards, before=before)
    new_keys = NO_KEYS
    if is_private and not before.is_private:
        new_keys = _add_key(connection, scope, page_id, key)
    elif not is_private:
        store.remove_keys(connection, page_id)
    return find(connection, scope.account_id, page_id), new_keys


def replace_key(
    connection: Connection, scope: Scope, page_id: str, *, key: NewKey
) -> tuple[StatusPage, Mapping[str, str]]:
    """Give a private page another key; the one that it had opens it no more.

    Raises:
        NotFoundError: the account has no such page.
        ConflictError: the page is public.
    """
    page = find(connection, scope.account_id, page_id)
    if not page.is_private:
        raise ConflictError(f"The status page {page.name} is public; make it private first.")
    store.remove_keys(connection, page_id)
    new_keys = _add_key(connection, scope, page_id, key)
    return find(connection, scope.account_id, page_id), new_keys


def delete(connection: Connection, scope: Scope, page_id: str) -> None:
    """Forget a status page and its subscriptions.

    Raises:
        NotFoundError: the account has no such page.
    """
    store.remove(connection, find(connection, scope.account_id, page_id).id)


def new_key(pepper: Pepper) -> NewKey:
    """A fresh key."""
    return pepper.new_key(KEY_PREFIX)


def _build_columns(body: StatusPageWrite, *, is_private: bool) -> dict[str, Any]:
    return {
        "name": body.name,
        "url": body.url,
        "custom_domain": _lower(body.custom_domain),
        "is_private": is_private,
        "doc": build_look(body),
    }


def _lower(domain: str | None) -> str | None:
    return domain.lower() if domain else None


def _require_free(connection: Connection, body: StatusPageWrite, *, but: str | None) -> None:
    held = store.find_by_url(connection, body.url)
    if held is not None and held.id != but:
        raise ConflictError(f"A status page with the url {body.url} already exists; use another.")
    domain = _lower(body.custom_domain)
    held = store.find_by_domain(connection, domain) if domain else None
    if held is not None and held.id != but:
        raise ConflictError(f"A status page at {domain} already exists; use another domain.")


def _put_cards(
    connection: Connection,
    scope: Scope,
    page_id: str,
    cards: Sequence[CardWrite],
    *,
    before: StatusPage | None,
) -> None:
    known = {card.id: card for card in before.cards} if before else {}
    rows: list[dict[str, Any]] = []
    services: list[list[str]] = []
    for position, card in enumerate(cards):
        services.append(list(dict.fromkeys(one.id for one in card.services)))
        # A card that is named twice is itself once; the second one is new.
        held = known.pop(card.id, None) if card.id else None
        row = {"page_id": page_id, "position": position, "name": card.name}
        rows.append({**row, **_identify(held, scope, name=card.name, services=services[-1])})
        field = f"cards[{position}].services"
        require_services(connection, scope.account_id, services[-1], field=field)
    store.replace_cards(connection, page_id, rows, services)


def _identify(
    held: Card | None, scope: Scope, *, name: str, services: Sequence[str]
) -> dict[str, Any]:
    """What a card keeps of the one that it replaces; none: it is new."""
    if held is None:
        return {"id": new_id(scope.now_ms), "created_ms": scope.now_ms, "updated_ms": None}
    is_same = held.name == name and [one.id for one in held.services] == services
    updated_ms = held.updated_ms if is_same else scope.now_ms
    return {"id": held.id, "created_ms": held.created_ms, "updated_ms": updated_ms}


def _add_key(connection: Connection, scope: Scope, page_id: str, key: NewKey) -> Mapping[str, str]:
    key_id = new_id(scope.now_ms)
    values = {"id": key_id, "page_id": page_id, "hash": key.digest, "masked": key.masked}
    store.add_key(connection, {**values, "created_ms": scope.now_ms})
    return {key_id: key.raw}
