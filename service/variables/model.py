"""Variables as they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from service.vault.encryption import Place


class Level(StrEnum):
    """Whose variable it is; later ones win over earlier ones."""

    ACCOUNT = "account"
    GROUP = "group"
    CHECK = "check"


class Owner(NamedTuple):
    """What variables belong to."""

    account_id: str
    level: Level
    owner_id: str

    @classmethod
    def account(cls, account_id: str) -> "Owner":
        """The account itself."""
        return cls(account_id, Level.ACCOUNT, account_id)

    @classmethod
    def group(cls, account_id: str, group_id: int) -> "Owner":
        """A group of the account."""
        return cls(account_id, Level.GROUP, str(group_id))

    @classmethod
    def check(cls, account_id: str, check_id: str) -> "Owner":
        """A check of the account."""
        return cls(account_id, Level.CHECK, check_id)

    def place(self, key: str, *, secret: bool) -> Place:
        """Where a value is encrypted for; a secret that is marked as none opens no more."""
        kind = "secret" if secret else "plain"
        return ("variable", self.account_id, self.level, self.owner_id, key, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRow:
    """A variable as it is stored."""

    owner: Owner
    key: str
    value: bytes = field(repr=False)
    """Encrypted for `place`."""
    locked: bool
    secret: bool

    @property
    def place(self) -> Place:
        """Where its value is encrypted for."""
        return self.owner.place(self.key, secret=self.secret)


def read_row(account_id: str, row: Sequence[Any]) -> VariableRow:
    """Read (level, owner, key, value, locked, secret) as an engine's own statement returns them."""
    level, owner_id, key, value, locked, secret = row
    return VariableRow(
        owner=Owner(account_id, Level(level), owner_id),
        key=key,
        value=value,
        locked=bool(locked),
        secret=bool(secret),
    )
