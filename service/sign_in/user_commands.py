"""Commands of users and of sign-in links."""

import getpass
import sys
from datetime import UTC, datetime
from typing import Final

import click

from service.accounts import actions as accounts
from service.accounts.model import KeyRow, Role
from service.commands import Console, carry_out, only_account
from service.errors import CommandError
from service.http.errors import InvalidError
from service.settings import Settings, read_settings
from service.sign_in import actions as sign_in
from service.sign_in.model import Principal
from service.users import actions as users
from service.users.model import NewUser, UserRow
from service.users.passwords import hash_password
from service.users.rules import require_password

_GOOD: Final = "It works once, for 24 h."
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def create_user(new: NewUser, *, account: str | None, by_link: bool) -> None:
    """Add a user, with a password that is typed, or with a link to choose one."""
    hashed = None if by_link else hash_password(_read_password())

    def act(console: Console) -> str:
        owner = account or only_account(console)
        accounts.find_account(console.connection, owner)
        user = users.create_user(console.connection, owner, new, now_ms=console.now_ms)
        console.note("users create", account_id=owner, resource_id=user.id)
        return _give_password(console, user, hashed)

    _print_link(carry_out(act), f"created {new.email}, {new.role}")


def set_password(email: str, *, by_link: bool) -> None:
    """Set a user's password, or print a link to choose one; sessions of the user end."""
    hashed = None if by_link else hash_password(_read_password())

    def act(console: Console) -> str:
        user = _find_user(console, email)
        console.note("users password", account_id=user.account_id, resource_id=user.id)
        return _give_password(console, user, hashed)

    _print_link(carry_out(act), f"changed the password of {email}")


def list_users() -> None:
    """Print all users."""
    for user in carry_out(lambda console: users.list_users(console.connection)):
        state = "" if user.disabled_ms is None else f"  disabled {_format_day(user.disabled_ms)}"
        seen = "never signed in" if user.signed_in_ms is None else _format_day(user.signed_in_ms)
        who = f"{user.email}  {user.name}".rstrip()
        click.echo(f"{user.account_id}  {user.role:<10}  {seen:<15}  {who}{state}")


def disable_user(email: str) -> None:
    """Let a user in no more."""

    def act(console: Console) -> None:
        user = _find_user(console, email)
        sign_in.disable_user(console.connection, user.id, now_ms=console.now_ms)
        console.note("users disable", account_id=user.account_id, resource_id=user.id)

    carry_out(act)
    click.echo(f"disabled {email}")


def enable_user(email: str) -> None:
    """Let a disabled user sign in again."""

    def act(console: Console) -> None:
        user = _find_user(console, email)
        users.enable(console.connection, user.id)
        console.note("users enable", account_id=user.account_id, resource_id=user.id)

    carry_out(act)
    click.echo(f"enabled {email}")


def print_sign_in_link(*, key_id: str | None, email: str | None) -> None:
    """Print a link that signs one browser in, once."""
    if key_id is not None and email is not None:
        raise CommandError("--key and --user are both given; use one of them")

    def act(console: Console) -> str:
        if email is not None:
            user = _find_user(console, email)
            if user.disabled_ms is not None:
                raise CommandError(f"{email} is disabled; see users enable")
            who, account_id = Principal(user_id=user.id), user.account_id
        else:
            key = _find_key(console, key_id)
            who, account_id = Principal(key_id=key.id), key.account_id
        console.note("sign-in link", account_id=account_id, resource_id=who.user_id or who.key_id)
        return sign_in.create_link(console.connection, console.pepper, who, now_ms=console.now_ms)

    raw = carry_out(act)
    click.echo(f"{_base_url(read_settings())}/sign-in/{raw}")
    click.echo(_GOOD, err=True)


def _give_password(console: Console, user: UserRow, hashed: str | None) -> str:
    """Set a password, or make a link for one: its secret, else nothing."""
    if hashed is not None:
        sign_in.set_password(console.connection, user.id, hashed)
        return ""
    if user.disabled_ms is not None:
        raise CommandError(f"{user.email} is disabled; see users enable")
    return sign_in.create_password_link(
        console.connection, console.pepper, user.id, now_ms=console.now_ms
    )


def _print_link(raw: str, done: str) -> None:
    if not raw:
        click.echo(done)
        return
    click.echo(f"{_base_url(read_settings())}/password/{raw}")
    click.echo(f"{_GOOD} Whoever opens it chooses the password.", err=True)


def _find_user(console: Console, email: str) -> UserRow:
    found = users.find_by_email(console.connection, email)
    if found is None:
        raise CommandError(f"there is no user {email}; see users list")
    return found.user


def _find_key(console: Console, key_id: str | None) -> KeyRow:
    """The key with this id; without one the oldest that may write."""
    good = [
        key
        for key in accounts.list_keys(console.connection)
        if key.revoked_ms is None and (key.id == key_id or key_id is None)
    ]
    if not good:
        what = "valid key" if key_id is None else f"valid key {key_id}"
        raise CommandError(f"there is no {what}; see keys list")
    if key_id is None:
        only_account(console)
    return min(good, key=lambda key: (key.role is not Role.READ_WRITE, key.created_ms))


def _read_password() -> str:
    """A new password, from the terminal twice, or else a line of standard input."""
    if sys.stdin.isatty():
        password = getpass.getpass("New password: ")
        if getpass.getpass("Once more: ") != password:
            raise CommandError("the two passwords differ; nothing was changed")
    else:
        password = sys.stdin.readline().rstrip("\n")
    try:
        require_password(password)
    except InvalidError as problem:
        raise CommandError(problem.message) from problem
    return password


def _base_url(settings: Settings) -> str:
    host = _EVERYWHERE.get(settings.host, settings.host)
    return settings.public_url or f"http://{host}:{settings.port}"


def _format_day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
