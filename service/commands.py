"""Commands of the service: keys, accounts, the audit log, the OpenAPI document."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

import click
from sqlalchemy import Connection

from service.accounts import actions as accounts
from service.accounts.actions import KeyRequest, require_pepper
from service.accounts.keys import Pepper
from service.accounts.model import Role, WrongPepperError
from service.audit import audit
from service.audit.model import Entry
from service.clock import Clock
from service.db.databases import open_database
from service.db.engine import DatabaseBusyError, DatabaseUnusableError
from service.db.migrate import HEAD, revision_of
from service.errors import CommandError, SettingsError
from service.http.errors import ConflictError, InvalidError, NotFoundError
from service.pepper import read_kept_pepper, wrong_pepper
from service.routers import document
from service.settings import Settings, read_settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Console:
    """One transaction."""

    connection: Connection
    pepper: Pepper
    now_ms: int

    def note(self, operation: str, *, account_id: str, resource_id: str | None) -> None:
        """Tell the audit log; `operation` is the command."""
        resource, *_ = operation.split()
        entry = Entry(
            account_id=account_id,
            key_id=None,
            operation=operation,
            resource=resource,
            resource_id=resource_id,
            fields=(),
            address=None,
            at_ms=self.now_ms,
        )
        audit.record(self.connection, entry)


def at_console(settings: Settings, act: Callable[[Console], T]) -> T:
    """Do something in a transaction of its own; a running service goes on meanwhile.

    Raises:
        SettingsError: there is no database of this version where the settings say.
        DatabaseBusyError: the service holds the database for long.
    """
    file = settings.database_file
    if settings.database == file and not file.is_file():
        mend = "start the service once, and use its SERVICE_DATA_DIR and DATABASE_URL"
        raise SettingsError((f"there is no database at {file}; {mend}",))
    return asyncio.run(_acted(settings, act))


async def _acted(settings: Settings, act: Callable[[Console], T]) -> T:
    database = open_database(settings.database)
    try:
        return await database.write(lambda connection: act(_decrypt(connection, settings)))
    except WrongPepperError as problem:
        raise wrong_pepper(settings) from problem
    finally:
        await database.close()


def _decrypt(connection: Connection, settings: Settings) -> Console:
    if revision_of(connection) != HEAD:
        sentence = "the database is from another version; start this version's service with it once"
        raise SettingsError((sentence,))
    pepper = read_kept_pepper(settings)
    require_pepper(connection, pepper)
    return Console(connection, pepper, Clock().now_ms(connection))


_MOST_NAME_LETTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKeyOptions:
    """What key is wanted."""

    name: str
    role: str
    program: bool
    account: str | None
    """None: of the only one that there is."""


def create_key(options: NewKeyOptions) -> None:
    """Make an API key and print it."""
    wish = KeyRequest(
        name=options.name[:_MOST_NAME_LETTERS],
        role=Role(options.role.upper()),
        of_user=not options.program,
    )

    def act(console: Console) -> tuple[str, str]:
        owner = options.account or only_account(console)
        key_id, key = accounts.create_key(
            console.connection, console.pepper, owner, wish=wish, now_ms=console.now_ms
        )
        console.note("keys create", account_id=owner, resource_id=key_id)
        return key_id, key.raw

    key_id, raw = carry_out(act)
    click.echo(raw)
    click.echo(f"id {key_id}, {wish.role}; the key is shown this once", err=True)


def list_keys() -> None:
    """Print all API keys."""
    for key in carry_out(lambda console: accounts.list_keys(console.connection)):
        ended = "" if key.revoked_ms is None else f"  revoked {_day(key.revoked_ms)}"
        made = f"{key.masked}  {key.role:<10}  {_day(key.created_ms)}"
        click.echo(f"{key.id}  {key.account_id}  {made}  {key.name}{ended}")


def revoke_key(key_id: str) -> None:
    """End an API key."""

    def act(console: Console) -> None:
        found = [one for one in accounts.list_keys(console.connection) if one.id == key_id]
        if not found or found[0].revoked_ms is not None:
            raise CommandError(f"there is no valid key {key_id}; see keys list")
        account_id = found[0].account_id
        accounts.end_key(console.connection, key_id, account_id=account_id, now_ms=console.now_ms)
        console.note("keys revoke", account_id=account_id, resource_id=key_id)

    carry_out(act)
    click.echo(f"revoked {key_id}")


def create_account(name: str) -> None:
    """Make an account and print its id."""
    if not 0 < len(name.strip()) <= _MOST_NAME_LETTERS:
        raise CommandError(f"NAME has {len(name)} characters; use 1 to {_MOST_NAME_LETTERS}")

    def act(console: Console) -> str:
        made = accounts.create_account(console.connection, name=name, now_ms=console.now_ms)
        console.note("accounts create", account_id=made.id, resource_id=made.id)
        return made.id

    click.echo(carry_out(act))


def list_accounts() -> None:
    """Print all accounts."""
    for row in carry_out(lambda console: accounts.list_accounts(console.connection)):
        click.echo(f"{row.id}  {_day(row.created_ms)}  {row.name}")


def print_audit(*, limit: int, account: str | None) -> None:
    """Print the newest changes."""
    entries = carry_out(lambda c: audit.list_newest(c.connection, limit=limit, account_id=account))
    for entry in entries:
        at = datetime.fromtimestamp(entry.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, **asdict(entry)}
        del line["at_ms"]
        click.echo(json.dumps(line))


def print_openapi() -> None:
    """Print the document."""
    click.echo(json.dumps(document(), indent=2, ensure_ascii=False))


def carry_out(act: Callable[[Console], T]) -> T:
    """Do something in a transaction on the database of the settings.

    Raises:
        CommandError: it was not done; says why.
    """
    with explained_errors():
        return at_console(read_settings(), act)


@contextmanager
def explained_errors() -> Iterator[None]:
    """End a command with the sentence of what went wrong.

    Raises:
        CommandError: the command was not carried out; says why.
    """
    try:
        yield
    except SettingsError as problem:
        raise CommandError(str(problem)) from problem
    except (ConflictError, InvalidError, NotFoundError) as problem:
        raise CommandError(problem.message.rstrip(".")) from problem
    except (DatabaseBusyError, DatabaseUnusableError) as problem:
        raise CommandError(str(problem), own_fault=True) from problem


def only_account(console: Console) -> str:
    """The id of the only account.

    Raises:
        CommandError: there are several.
    """
    found = accounts.list_accounts(console.connection)
    if len(found) != 1:
        raise CommandError(f"there are {len(found)} accounts; name one with --account")
    return found[0].id


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
