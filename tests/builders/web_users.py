"""People who sign in to the pages."""

from typing import Any, Final

from service.accounts.model import Role
from service.sign_in import actions as sign_in
from service.users import actions as users
from service.users.model import NewUser, UserRow
from service.users.passwords import hash_password
from tests.servers.public_api import PublicApi

PASSWORD: Final = "correct horse battery"


async def a_user(
    api: PublicApi,
    email: str = "ann@example.com",
    *,
    name: str = "Ann",
    role: Role = Role.READ_WRITE,
    password: str | None = PASSWORD,
) -> UserRow:
    """A user of Alice's account. Without a password: none was chosen yet."""
    hashed = None if password is None else hash_password(password)

    def change(connection: Any) -> UserRow:
        now_ms = api.backend.clock.now_ms(connection)
        account_id = api.alice.secrets.account_id
        new = NewUser(email=email, name=name, role=role)
        user = users.create_user(connection, account_id, new, now_ms=now_ms)
        if hashed is not None:
            sign_in.set_password(connection, user.id, hashed)
        return user

    return await api.database.write(change)
