"""Variables as the API shows them."""

from dataclasses import dataclass, replace
from typing import Any

import structlog

from service.http.errors import UnreadableError
from service.variables.bodies import VariableShown
from service.variables.model import Level, VariableRow
from service.vault.sealing import UnsealableError, Vault
from service.vault.texts import HIDDEN

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Sight:
    """What opens stored values, and for whose eyes."""

    vault: Vault
    may_write: bool
    """Whether locked values are shown."""
    hides_unreadable: bool = False
    """Whether what does not open is shown as `HIDDEN`, instead of being refused."""

    @property
    def hiding(self) -> "Sight":
        """The same for an item of a list, of which the others are to be shown."""
        return replace(self, hides_unreadable=True)


def shown(row: VariableRow, sight: Sight) -> VariableShown:
    """A variable as its answer; what is not shown is not even opened.

    Raises:
        UnreadableError: its value is to be shown, and does not open.
    """
    value = _value(row, sight)
    return VariableShown(key=row.key, value=value, locked=row.locked, secret=row.secret)


def _value(row: VariableRow, sight: Sight) -> str:
    if row.secret:
        return ""
    if row.locked and not sight.may_write:
        return HIDDEN
    try:
        return _opened(row, sight.vault)
    except UnreadableError:
        if sight.hides_unreadable:
            return HIDDEN
        raise


def shown_doc(row: VariableRow, sight: Sight) -> dict[str, Any]:
    """The same as a part of a larger answer."""
    return shown(row, sight).model_dump(mode="json")


def compared(row: VariableRow, vault: Vault) -> dict[str, Any]:
    """All of it, a secret's value too: to tell what a change changed, and never for an answer.

    A value that does not open is like no other, so that whatever takes its place is a change.
    """
    try:
        value = vault.open(row.value, row.place)
    except UnsealableError:
        value = None
    return {"key": row.key, "value": value, "locked": row.locked, "secret": row.secret}


def _opened(row: VariableRow, vault: Vault) -> str:
    try:
        return vault.open(row.value, row.place)
    except UnsealableError as problem:
        level, owner_id = row.owner.level, row.owner.owner_id
        where = {"level": level.value, "owner": owner_id, "key": row.key}
        log.exception("variables.unreadable", reason=str(problem), **where)
        whose = "the account" if level is Level.ACCOUNT else f"{level} {owner_id}"
        raise UnreadableError(
            f"The stored value of the variable {row.key} of {whose} cannot be read: {problem}."
            " Set it anew, or delete it."
        ) from problem
