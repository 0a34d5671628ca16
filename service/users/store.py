"""SQL of users."""

from typing import Any, Final

from sqlalchemy import Connection, Row, Select, insert, select, update

from service.accounts.model import Role
from service.db.tables.users import account_user
from service.users.model import Credentials, UserRow

_COLUMNS: Final = account_user.c
_USERS: Final[Select[Any]] = select(
    _COLUMNS.id,
    _COLUMNS.account_id,
    _COLUMNS.email,
    _COLUMNS.name,
    _COLUMNS.role,
    _COLUMNS.password_hash,
    _COLUMNS.subject,
    _COLUMNS.created_ms,
    _COLUMNS.disabled_ms,
    _COLUMNS.signed_in_ms,
).order_by(_COLUMNS.created_ms, _COLUMNS.id)


def insert_user(connection: Connection, row: UserRow, *, email_key: str) -> None:
    """Store a user, who has no password yet."""
    values = {
        "id": row.id,
        "account_id": row.account_id,
        "email": row.email,
        "email_key": email_key,
        "name": row.name,
        "role": row.role.value,
        "created_ms": row.created_ms,
    }
    connection.execute(insert(account_user), values)


def list_users(connection: Connection, account_id: str | None) -> tuple[UserRow, ...]:
    """Users, disabled ones as well, oldest first. None: of all accounts."""
    found = _USERS if account_id is None else _USERS.where(_COLUMNS.account_id == account_id)
    return tuple(_user_row(row) for row in connection.execute(found))


def has_users(connection: Connection) -> bool:
    """Whether anybody may sign in by e-mail address."""
    return connection.execute(select(_COLUMNS.id).limit(1)).first() is not None


def find_user(connection: Connection, user_id: str) -> UserRow | None:
    """One user. None: there is none with this id."""
    row = connection.execute(_USERS.where(_COLUMNS.id == user_id)).first()
    return None if row is None else _user_row(row)


def find_by_email(connection: Connection, email_key: str) -> Credentials | None:
    """The user with this address. None: nobody has it."""
    row = connection.execute(_USERS.where(_COLUMNS.email_key == email_key)).first()
    return None if row is None else _credentials(row)


def find_credentials(connection: Connection, user_id: str) -> Credentials | None:
    """What a user's password is checked against. None: there is no such user."""
    row = connection.execute(_USERS.where(_COLUMNS.id == user_id)).first()
    return None if row is None else _credentials(row)


def find_by_subject(connection: Connection, issuer: str, subject: str) -> UserRow | None:
    """The user whom an OpenID provider knows by this name. None: nobody."""
    found = _USERS.where(_COLUMNS.issuer == issuer, _COLUMNS.subject == subject)
    row = connection.execute(found).first()
    return None if row is None else _user_row(row)


def update_user(connection: Connection, user_id: str, **values: object) -> None:
    """Change columns of a user."""
    change = update(account_user).where(_COLUMNS.id == user_id)
    connection.execute(change.values(**values))


def update_hash(connection: Connection, user_id: str, *, before: str, now: str) -> None:
    """Store the same password's new hash, unless another password was chosen meanwhile."""
    same = (_COLUMNS.id == user_id) & (_COLUMNS.password_hash == before)
    connection.execute(update(account_user).where(same).values(password_hash=now))


def _user_row(row: Row[Any]) -> UserRow:
    fields = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
    is_known = {
        "has_password": fields.pop("password_hash") is not None,
        "is_connected": fields.pop("subject") is not None,
    }
    return UserRow(**{**fields, "role": Role(row.role), **is_known})


def _credentials(row: Row[Any]) -> Credentials:
    return Credentials(user=_user_row(row), password_hash=row.password_hash)
