"""What everyone asks of subscriptions; each is part of the caller's transaction.

Who calls has made sure that a page is the account's or public.
"""

import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.accounts.keys import Pepper, digest_key
from service.db.ids import new_id
from service.http.errors import NotFoundError
from service.subscriptions import store
from service.subscriptions.model import Subscription, SubscriptionStatus
from service.subscriptions.rules import AGAIN_MS, LINK_MS, make_signature, make_token

_SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Moment:
    """The transaction's time, and the pepper that links are made with."""

    now_ms: int
    pepper: Pepper


def subscribe(connection: Connection, page_id: str, address: str, at: Moment) -> bool:
    """Subscribe an address to a page, and let a mail ask for confirmation.

    Returns whether it is new. An address that waits for confirmation gets another link if its last
    one is older than some minutes; a confirmed one gets nothing.
    """
    found = store.find_by_address(connection, page_id, address)
    if found is None:
        values = {
            "id": new_id(at.now_ms),
            "page_id": page_id,
            "address": address,
            "status": SubscriptionStatus.PENDING.value,
            "created_ms": at.now_ms,
            "updated_ms": at.now_ms,
        }
        store.add(connection, values)
        _send_link(connection, str(values["id"]), at)
        return True
    if found.status is SubscriptionStatus.PENDING and _is_old(found, at.now_ms):
        _send_link(connection, found.id, at)
    return False


def subscribe_all(
    connection: Connection, page_id: str, addresses: Iterable[str], at: Moment
) -> tuple[int, int]:
    """Subscribe addresses; how many are new, and how many are not."""
    new = [subscribe(connection, page_id, address, at) for address in addresses]
    return sum(new), len(new) - sum(new)


def _is_old(row: Subscription, now_ms: int) -> bool:
    return (row.token_until_ms or 0) - LINK_MS + AGAIN_MS <= now_ms


def _send_link(connection: Connection, subscription_id: str, at: Moment) -> None:
    salt = secrets.token_bytes(_SALT_BYTES)
    token = make_token(at.pepper, subscription_id, salt)
    link = {"token_hash": _hash(at.pepper, token), "token_until_ms": at.now_ms + LINK_MS}
    store.change(connection, subscription_id, {**link, "updated_ms": at.now_ms})
    store.queue_confirmation(connection, subscription_id, salt=salt, now_ms=at.now_ms)


def _hash(pepper: Pepper, token: str) -> bytes:
    return pepper.keyed(digest_key(token))


def find(connection: Connection, subscription_id: str) -> Subscription | None:
    """A subscription. None: it has ended, or never was."""
    return store.find(connection, subscription_id)


def find_by_link(connection: Connection, token: str, at: Moment) -> Subscription | None:
    """The subscription that a link confirms, or has confirmed. None: it has run out, or is none."""
    found = store.find_by_token(connection, _hash(at.pepper, token))
    if found is None or found.status is SubscriptionStatus.VERIFIED:
        return found
    return found if (found.token_until_ms or 0) >= at.now_ms else None


def confirm(connection: Connection, token: str, at: Moment) -> bool:
    """Confirm a subscription by its link. Confirming it again changes nothing.

    False: the link has run out, or is none.
    """
    found = find_by_link(connection, token, at)
    if found is None:
        return False
    values = {
        "status": SubscriptionStatus.VERIFIED.value,
        "token_until_ms": None,
        "updated_ms": at.now_ms,
    }
    store.change(connection, found.id, values)
    return True


def is_signed(subscription_id: str, signature: str, *, pepper: Pepper) -> bool:
    """Whether a link to unsubscribe came from a mail of ours."""
    wanted = make_signature(pepper, subscription_id)
    return hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "surrogatepass"))


def unsubscribe(connection: Connection, subscription_id: str) -> None:
    """End a subscription by the link in its mails.

    One that has ended before stays so: whoever clicks twice gets no error.
    """
    store.remove(connection, subscription_id)


def list_of_page(connection: Connection, page_id: str) -> list[Subscription]:
    """All subscriptions of a page, oldest first."""
    return store.list_of_page(connection, page_id)


def delete(connection: Connection, page_id: str, subscription_id: str) -> None:
    """End a subscription of a page.

    Raises:
        NotFoundError: the page has none with this id.
    """
    found = store.find(connection, subscription_id)
    if found is None or found.page_id != page_id:
        raise NotFoundError(f"The status page has no subscription {subscription_id}.")
    store.remove(connection, subscription_id)


def notify(connection: Connection, page_ids: Sequence[str], update_id: str, *, due_ms: int) -> int:
    """Let mails tell the confirmed subscribers of the pages of an update, from `due_ms` on."""
    return store.queue_update(connection, page_ids, update_id, due_ms=due_ms)


def move_mails(connection: Connection, update_id: str, *, due_ms: int) -> None:
    """Send the mails of an update that wait from another time on."""
    store.move_update(connection, update_id, due_ms=due_ms)


def take_back_mails(connection: Connection, update_id: str) -> None:
    """Send none of the mails of an update that wait."""
    store.remove_of_update(connection, update_id)


def forget_unconfirmed(connection: Connection, *, now_ms: int) -> int:
    """Remove subscriptions that nobody has confirmed in time."""
    return store.remove_unconfirmed(connection, now_ms=now_ms)
