"""SQL of subscriptions and of the mails that wait."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    LargeBinary,
    Row,
    Select,
    delete,
    insert,
    literal,
    select,
    update,
)

from service.db.tables.status_pages import status_mail, status_subscription
from service.subscriptions.model import Subscription, SubscriptionStatus, WaitingMail

_ALL: Final[Select[Any]] = select(status_subscription)
_WAITING: Final[Select[Any]] = select(
    *status_subscription.c,
    status_mail.c.id.label("mail_id"),
    status_mail.c.update_id,
    status_mail.c.salt,
    status_mail.c.attempts,
    status_mail.c.created_ms.label("queued_ms"),
).join_from(status_mail, status_subscription)


def find(connection: Connection, subscription_id: str) -> Subscription | None:
    """One subscription. None: there is none with this id."""
    return _find(connection, _ALL.where(status_subscription.c.id == subscription_id))


def find_by_address(connection: Connection, page_id: str, address: str) -> Subscription | None:
    """The subscription of an address to a page. None: there is none."""
    query = _ALL.where(
        status_subscription.c.page_id == page_id,
        status_subscription.c.address_key == address.lower(),
    )
    return _find(connection, query)


def find_by_token(connection: Connection, token_hash: bytes) -> Subscription | None:
    """The subscription that a link confirms. None: no link has this token."""
    return _find(connection, _ALL.where(status_subscription.c.token_hash == token_hash))


def list_of_page(connection: Connection, page_id: str) -> list[Subscription]:
    """All of a page, oldest first."""
    query = _ALL.where(status_subscription.c.page_id == page_id).order_by(
        status_subscription.c.created_ms, status_subscription.c.address_key
    )
    return [_read(row) for row in connection.execute(query)]


def add(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new subscription."""
    key = str(values["address"]).lower()
    connection.execute(insert(status_subscription).values(**values, address_key=key))


def change(connection: Connection, subscription_id: str, values: Mapping[str, Any]) -> None:
    """Change a subscription."""
    where = status_subscription.c.id == subscription_id
    connection.execute(update(status_subscription).where(where).values(**values))


def remove(connection: Connection, subscription_id: str) -> None:
    """Forget a subscription; its mails that wait go with it."""
    where = status_subscription.c.id == subscription_id
    connection.execute(delete(status_subscription).where(where))


def remove_unconfirmed(connection: Connection, *, now_ms: int) -> int:
    """Forget those whose links have run out."""
    old = delete(status_subscription).where(
        status_subscription.c.token_until_ms < now_ms,
        status_subscription.c.status == SubscriptionStatus.PENDING.value,
    )
    return connection.execute(old).rowcount


def queue_confirmation(
    connection: Connection, subscription_id: str, *, salt: bytes, now_ms: int
) -> None:
    """Let a mail ask for confirmation; one that waits is replaced."""
    of_subscription = status_mail.c.subscription_id == subscription_id
    connection.execute(
        delete(status_mail).where(of_subscription, status_mail.c.update_id.is_(None))
    )
    values = {"subscription_id": subscription_id, "update_id": None, "salt": salt, "attempts": 0}
    connection.execute(insert(status_mail).values(**values, due_ms=now_ms, created_ms=now_ms))


def queue_update(
    connection: Connection, page_ids: Sequence[str], update_id: str, *, due_ms: int
) -> int:
    """Let a mail of the update wait for each confirmed subscription of the pages.

    A subscription that has one of this update waiting gets no other one.
    """
    waiting = select(status_mail.c.subscription_id).where(status_mail.c.update_id == update_id)
    columns = ["subscription_id", "update_id", "salt", "attempts", "due_ms", "created_ms"]
    chosen = select(
        status_subscription.c.id,
        literal(update_id),
        literal(b"", LargeBinary),
        literal(0),
        literal(due_ms, BigInteger),
        literal(due_ms, BigInteger),
    ).where(
        status_subscription.c.page_id.in_(page_ids),
        status_subscription.c.status == SubscriptionStatus.VERIFIED.value,
        status_subscription.c.id.not_in(waiting),
    )
    return connection.execute(insert(status_mail).from_select(columns, chosen)).rowcount


def move_update(connection: Connection, update_id: str, *, due_ms: int) -> None:
    """Let the mails of an update that wait become due at another time."""
    waiting = update(status_mail).where(status_mail.c.update_id == update_id)
    connection.execute(waiting.values(due_ms=due_ms, created_ms=due_ms))


def remove_of_update(connection: Connection, update_id: str) -> None:
    """Forget the mails of an update that wait."""
    connection.execute(delete(status_mail).where(status_mail.c.update_id == update_id))


def has_due_mails(connection: Connection, *, now_ms: int) -> bool:
    """Whether a mail can be sent."""
    query = select(status_mail.c.id).where(status_mail.c.due_ms <= now_ms).limit(1)
    return connection.execute(query).first() is not None


def take_due_mails(
    connection: Connection, *, now_ms: int, until_ms: int, limit: int
) -> tuple[WaitingMail, ...]:
    """The mails that are due, which nobody else takes before `until_ms`."""
    due = _WAITING.where(status_mail.c.due_ms <= now_ms).order_by(status_mail.c.due_ms)
    found = tuple(_read_mail(row) for row in connection.execute(due.limit(limit)))
    taken = update(status_mail).where(status_mail.c.id.in_([one.id for one in found]))
    connection.execute(taken.values(due_ms=until_ms, attempts=status_mail.c.attempts + 1))
    return found


def put_off_mail(connection: Connection, mail_id: int, *, due_ms: int) -> None:
    """Let a mail wait."""
    connection.execute(update(status_mail).where(status_mail.c.id == mail_id).values(due_ms=due_ms))


def remove_mails(connection: Connection, mail_ids: Sequence[int]) -> None:
    """Forget mails that were sent or given up."""
    connection.execute(delete(status_mail).where(status_mail.c.id.in_(mail_ids)))


def _find(connection: Connection, query: Select[Any]) -> Subscription | None:
    row = connection.execute(query).first()
    return None if row is None else _read(row)


def _read(row: Row[Any]) -> Subscription:
    return Subscription(
        id=row.id,
        page_id=row.page_id,
        address=row.address,
        status=SubscriptionStatus(row.status),
        token_until_ms=row.token_until_ms,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
    )


def _read_mail(row: Row[Any]) -> WaitingMail:
    return WaitingMail(
        id=row.mail_id,
        subscription=_read(row),
        update_id=row.update_id,
        salt=row.salt,
        attempts=row.attempts + 1,
        created_ms=row.queued_ms,
    )
