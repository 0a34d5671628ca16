"""Signing in whom the provider knows: one transaction."""

from sqlalchemy import Connection

from service.accounts import actions as accounts
from service.accounts.keys import Pepper
from service.accounts.model import Role
from service.oidc.model import OidcIdentity, OidcRefusedError, OidcSettings
from service.oidc.rules import require_allowed
from service.sign_in import actions as sign_in
from service.sign_in.model import NewSession, Principal
from service.users import actions as users
from service.users.model import MOST_NAME_LETTERS, NewUser, UserRow


def sign_in_identity(
    connection: Connection,
    pepper: Pepper,
    settings: OidcSettings,
    who: OidcIdentity,
    *,
    now_ms: int,
) -> NewSession:
    """Sign somebody in as the user that they are, and add one where that is allowed.

    Raises:
        OidcRefusedError: they may not sign in; says why.
    """
    role = require_allowed(settings, who)
    user = users.find_by_subject(connection, who.issuer, who.subject)
    if user is None:
        user = _connect(connection, who) or _add(connection, settings, who, role, now_ms=now_ms)
        users.connect_subject(connection, user.id, who.issuer, who.subject)
    if user.disabled_ms is not None:
        raise OidcRefusedError("Your user is disabled; ask somebody who may write to enable it.")
    if role is not None and role is not user.role:
        users.change_role(connection, user.id, role)
    return sign_in.start_session(connection, pepper, Principal(user_id=user.id), now_ms=now_ms)


def _connect(connection: Connection, who: OidcIdentity) -> UserRow | None:
    """The user with the verified address of somebody who has not signed in so before."""
    # An address in other letters may be folded into somebody else's: ß into ss, full width letters.
    is_plain = who.email is not None and who.email.isascii()
    found = users.find_by_email(connection, who.email) if who.email and is_plain else None
    if found is None:
        return None
    if found.user.is_connected:
        raise OidcRefusedError(
            f"{who.email} belonged to another person at {who.issuer} before. If that is you,"
            " somebody who may write has to disable your user and to enable it again."
        )
    return found.user


def _add(
    connection: Connection,
    settings: OidcSettings,
    who: OidcIdentity,
    role: Role | None,
    *,
    now_ms: int,
) -> UserRow:
    if who.email is None:
        raise OidcRefusedError(f"{who.issuer} has verified no mail address of yours.")
    found = accounts.list_accounts(connection)
    if not settings.adds_users or len(found) != 1:
        raise OidcRefusedError(
            f"There is no user with the address {who.email}; ask somebody who may write to add"
            " you in the settings."
        )
    new = NewUser(email=who.email, name=who.name[:MOST_NAME_LETTERS], role=role or Role.READ_ONLY)
    return users.create_user(connection, found[0].id, new, now_ms=now_ms)
