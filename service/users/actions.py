"""What happens to users: one transaction per function.

Whoever disables a user or sets a password goes through `service.sign_in.actions`, which ends their
sessions as well.
"""

from sqlalchemy import Connection

from service.accounts.model import Role
from service.db.ids import new_id
from service.http.errors import ConflictError, NotFoundError
from service.users import store
from service.users.model import Credentials, NewUser, UserRow
from service.users.rules import fold_email, require_user


def create_user(connection: Connection, account_id: str, new: NewUser, *, now_ms: int) -> UserRow:
    """Add a user, who cannot sign in before there is a password or a link.

    Raises:
        InvalidError: the address or the name cannot be used.
        ConflictError: somebody has this address.
    """
    require_user(new)
    email_key = fold_email(new.email)
    if store.find_by_email(connection, email_key) is not None:
        raise ConflictError(f"There is a user with the address {new.email} already.")
    row = UserRow(
        id=new_id(now_ms),
        account_id=account_id,
        email=new.email,
        name=new.name,
        role=new.role,
        has_password=False,
        is_connected=False,
        created_ms=now_ms,
        disabled_ms=None,
        signed_in_ms=None,
    )
    store.insert_user(connection, row, email_key=email_key)
    return row


def list_users(connection: Connection, *, account_id: str | None = None) -> tuple[UserRow, ...]:
    """Users, disabled ones as well, oldest first. Without an account: of all."""
    return store.list_users(connection, account_id)


def has_users(connection: Connection) -> bool:
    """Whether there is anybody who signs in by e-mail address."""
    return store.has_users(connection)


def find_user(connection: Connection, user_id: str, *, account_id: str) -> UserRow:
    """One user of an account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find_user(connection, user_id)
    if row is None or row.account_id != account_id:
        raise NotFoundError(f"There is no user {user_id}.")
    return row


def find_by_email(connection: Connection, email: str) -> Credentials | None:
    """The user with this address. None: nobody has it."""
    return store.find_by_email(connection, fold_email(email))


def find_credentials(connection: Connection, user_id: str) -> Credentials | None:
    """What a user's password is checked against. None: there is no such user."""
    return store.find_credentials(connection, user_id)


def find_enabled(connection: Connection, user_id: str) -> UserRow | None:
    """A user who may sign in. None: there is none with this id, or they are disabled."""
    row = store.find_user(connection, user_id)
    return None if row is None or row.disabled_ms is not None else row


def find_by_subject(connection: Connection, issuer: str, subject: str) -> UserRow | None:
    """The user whom an OpenID provider knows by this name. None: nobody."""
    return store.find_by_subject(connection, issuer, subject)


def connect_subject(connection: Connection, user_id: str, issuer: str, subject: str) -> None:
    """From now on the OpenID provider's name of somebody counts, not their address."""
    store.update_user(connection, user_id, issuer=issuer, subject=subject)


def change_role(connection: Connection, user_id: str, role: Role) -> None:
    """Let a user do more or less from their next request on."""
    store.update_user(connection, user_id, role=role.value)


def note_sign_in(connection: Connection, user_id: str, *, now_ms: int) -> None:
    """Remember when somebody signed in last."""
    store.update_user(connection, user_id, signed_in_ms=now_ms)


def disable(connection: Connection, user_id: str, *, now_ms: int) -> None:
    """Let a user sign in no more; once enabled again, an OpenID provider has to prove them anew."""
    store.update_user(connection, user_id, disabled_ms=now_ms, issuer=None, subject=None)


def enable(connection: Connection, user_id: str) -> None:
    """Let a disabled user sign in again."""
    store.update_user(connection, user_id, disabled_ms=None)


def set_password_hash(connection: Connection, user_id: str, hashed: str) -> None:
    """Store what a chosen password is checked against."""
    store.update_user(connection, user_id, password_hash=hashed)


def renew_hash(connection: Connection, user_id: str, *, before: str, now: str) -> None:
    """Store the same password's new hash, unless another password was chosen meanwhile."""
    store.update_hash(connection, user_id, before=before, now=now)
