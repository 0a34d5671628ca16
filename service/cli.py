"""The commands of the service beside serving: `python -m service keys`, and `picket keys` alike.

Each imports its part when it runs, so that `--help` answers at once.
"""
# ruff: noqa: PLC0415 - the reason stands above

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from service.errors import CommandError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_BAD_INPUT = 2
_OWN_FAULT = 70


class _Whole(click.IntRange):
    """A whole number within bounds; its refusal is a sentence of ours."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or the option with its value and what is allowed."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as problem:
            allowed = f"{self.min} to {self.max}"
            raise _refused(value, param, ctx, allowed=allowed) from problem


class _OneOf(click.Choice[str]):
    """One of some words, in capitals or not; its refusal is a sentence of ours."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or the option with its value and what is allowed."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as problem:
            allowed = " or ".join(self.choices)
            raise _refused(value, param, ctx, allowed=allowed) from problem


def _refused(
    value: object, param: click.Parameter | None, ctx: click.Context | None, *, allowed: str
) -> click.UsageError:
    name = param.opts[0] if param else "the value"
    return click.UsageError(f"{name} is {value}; use {allowed}", ctx)


@click.group(context_settings=_CONTEXT)
def commands() -> None:
    """What the service's own machine can do to its database; without a command it serves."""


def run(arguments: Sequence[str]) -> int:
    """Carry a command out; the exit code."""
    try:
        commands.main(list(arguments), prog_name="python -m service", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return _BAD_INPUT
    except CommandError as problem:
        print(problem, file=sys.stderr)  # noqa: T201 - the command line prints
        return _OWN_FAULT if problem.own_fault else _BAD_INPUT
    return 0


@commands.group(short_help="Create, list and revoke API keys of the service on this machine.")
def keys() -> None:
    """Create, list and revoke API keys of the service on this machine.

    It reads the same environment variables as the service, which may be running.
    """


@keys.command("create")
@click.option("--name", default="", metavar="NAME", help="A name for the key.")
@click.option(
    "--role",
    type=_OneOf(["READ_ONLY", "READ_WRITE"], case_sensitive=False),
    default="READ_WRITE",
    show_default=True,
    help="The key's role.",
)
@click.option("--program", is_flag=True, help="For a program: it begins with sv_, not cu_.")
@click.option("--account", metavar="ID", help="The key's account; required if there are several.")
def create_key(*, name: str, role: str, program: bool, account: str | None) -> None:
    """Create an API key and print it, only this once."""
    from service.commands import NewKeyOptions, create_key

    create_key(NewKeyOptions(name=name, role=role, program=program, account=account))


@keys.command("list")
def list_keys() -> None:
    """Print all API keys, including revoked ones, without their secrets."""
    from service.commands import list_keys

    list_keys()


@keys.command("revoke")
@click.argument("key_id")
def revoke_key(key_id: str) -> None:
    """Revoke the API key with this id; a running service refuses it within seconds."""
    from service.commands import revoke_key

    revoke_key(key_id)


@commands.group(short_help="Create and list accounts of the service on this machine.")
def accounts() -> None:
    """Create and list accounts of the service on this machine; they share nothing."""


@accounts.command("create")
@click.argument("name")
def create_account(name: str) -> None:
    """Create another account; `keys create --account` creates its first key."""
    from service.commands import create_account

    create_account(name)


@accounts.command("list")
def list_accounts() -> None:
    """Print all accounts."""
    from service.commands import list_accounts

    list_accounts()


@commands.group(short_help="Create, list and disable users of the pages on this machine.")
def users() -> None:
    """Create, list and disable users, who sign in to the pages.

    It reads the same environment variables as the service, which may be running.
    """


_BY_LINK = click.option(
    "--link", is_flag=True, help="Print a link with which the user chooses the password."
)


@users.command("create")
@click.argument("email")
@click.option("--name", default="", metavar="NAME", help="The name that the audit log shows.")
@click.option(
    "--role",
    type=_OneOf(["READ_ONLY", "READ_WRITE"], case_sensitive=False),
    default="READ_WRITE",
    show_default=True,
    help="What the user may do.",
)
@click.option("--account", metavar="ID", help="The user's account; required if there are several.")
@_BY_LINK
def create_user(*, email: str, name: str, role: str, account: str | None, link: bool) -> None:
    """Create a user; the password is read from the terminal, or from standard input."""
    from service.accounts.model import Role
    from service.sign_in.user_commands import create_user
    from service.users.model import NewUser

    new = NewUser(email=email, name=name, role=Role(role.upper()))
    create_user(new, account=account, by_link=link)


@users.command("list")
def list_users() -> None:
    """Print all users, including disabled ones."""
    from service.sign_in.user_commands import list_users

    list_users()


@users.command("password")
@click.argument("email")
@_BY_LINK
def set_password(*, email: str, link: bool) -> None:
    """Set a user's password, read from the terminal or from standard input.

    The user is signed out in every browser.
    """
    from service.sign_in.user_commands import set_password

    set_password(email, by_link=link)


@users.command("disable")
@click.argument("email")
def disable_user(email: str) -> None:
    """Sign a user out at once, and let them sign in no more."""
    from service.sign_in.user_commands import disable_user

    disable_user(email)


@users.command("enable")
@click.argument("email")
def enable_user(email: str) -> None:
    """Let a disabled user sign in again."""
    from service.sign_in.user_commands import enable_user

    enable_user(email)


@commands.command("sign-in", short_help="Print a link that signs one browser in, once.")
@click.option("--key", "key_id", metavar="ID", help="As this API key; see `keys list`.")
@click.option("--user", "email", metavar="EMAIL", help="As this user.")
def sign_in(*, key_id: str | None, email: str | None) -> None:
    """Print a link that signs one browser in, once, within 24 hours.

    Without options it signs in as the oldest API key that may write.
    """
    from service.sign_in.user_commands import print_sign_in_link

    print_sign_in_link(key_id=key_id, email=email)


@commands.command(short_help="Print who changed what in the service on this machine.")
@click.option("--limit", type=_Whole(1, 100_000), default=50, show_default=True)
@click.option("--account", metavar="ID", help="Only of this account.")
def audit(*, limit: int, account: str | None) -> None:
    """Print the newest changes, one JSON object per line, newest first."""
    from service.commands import print_audit

    print_audit(limit=limit, account=account)


_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@commands.command(short_help="Write the whole installation to one file, while the service runs.")
@_FILE
def backup(file: Path) -> None:
    """Write the database, the keys, artifacts and bundles to a new FILE, a tar archive.

    The service may be running. Whoever can read the file can read every secret.
    A database in PostgreSQL is not in the file; back it up by pg_dump.
    """
    from service.backup.backup import back_up

    back_up(file)


@commands.command(short_help="Restore a backup into an empty data folder.")
@_FILE
def restore(file: Path) -> None:
    """Verify the backup FILE and restore it into the empty data folder of the settings."""
    from service.backup.restore import restore

    restore(file)


@commands.command("migrate-store", short_help="Move the database to PostgreSQL, or back.")
@click.option(
    "--to",
    required=True,
    metavar="ADDRESS",
    help="A postgresql:// or sqlite:/// address; `postgresql` alone is that of DATABASE_URL, "
    "`sqlite` alone the file in SERVICE_DATA_DIR.",
)
def migrate_store(*, to: str) -> None:
    """Copy the database of a stopped service to PostgreSQL, or back to an SQLite file.

    It goes on where it was interrupted, compares all rows at the end, and leaves the source as it
    is. Give a password by DATABASE_URL or DATABASE_URL_FILE: arguments are seen by other users.
    """
    from service.store_migration.migrate_command import migrate_store

    migrate_store(to)


@commands.command(short_help="Print the OpenAPI document of the public API.")
def openapi() -> None:
    """Print the OpenAPI document of the public API; this needs no service and no settings."""
    from service.commands import print_openapi

    print_openapi()
