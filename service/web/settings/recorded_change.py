"""Changes that no operation of the API makes: for those who may write, and audited."""

from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Connection

from service.accounts.model import Role
from service.audit import audit
from service.audit.model import Entry
from service.http.errors import ForbiddenError
from service.http.rate_limits.rate_limit import address_of
from service.web.visit import Visit

T = TypeVar("T")

_READS_ONLY: Final = (
    f"Nothing was changed: you may only read; this takes somebody whose role is {Role.READ_WRITE}."
)


async def change_recorded(
    visit: Visit,
    operation: str,
    act: Callable[[Connection, int], tuple[str, T]],
    *,
    fields: tuple[str, ...] = (),
) -> T:
    """Make a change and note it, in one transaction.

    `operation`: as the command for it is called, such as `keys create`.
    `act` is given the time, and returns the id of what it changed with whatever else.

    Raises:
        ForbiddenError: the visitor may only read.
    """
    require_writer(visit)
    return await change_own(visit, operation, act, fields=fields)


async def change_own(
    visit: Visit,
    operation: str,
    act: Callable[[Connection, int], tuple[str, T]],
    *,
    fields: tuple[str, ...] = (),
) -> T:
    """Make a change that concerns the visitor alone, and note it, in one transaction."""
    caller = visit.visitor.caller

    def change(connection: Connection) -> T:
        now_ms = visit.now_ms(connection)
        resource_id, result = act(connection, now_ms)
        entry = Entry(
            account_id=caller.account_id,
            key_id=caller.key_id,
            user_id=caller.user_id,
            operation=operation,
            resource=operation.split(maxsplit=1)[0],
            resource_id=resource_id,
            fields=fields,
            address=address_of(visit.request),
            at_ms=now_ms,
        )
        audit.record(connection, entry)
        return result

    return await visit.backend.database.write(change)


def require_writer(visit: Visit) -> None:
    """Check that the visitor may write.

    Raises:
        ForbiddenError: they may only read.
    """
    if not visit.visitor.caller.may_write:
        raise ForbiddenError(_READS_ONLY)
