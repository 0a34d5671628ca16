"""The vault of a service's start: its keys come from a setting, or from a file that it makes."""

from collections import Counter
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection

from service.alert_channels import secrets as alert_channels
from service.certificates import secrets as certificates
from service.checks import actions as checks
from service.data_dir import make_own_file
from service.db.engine import Database
from service.errors import SettingsError
from service.groups import secrets as groups
from service.locations import secrets as locations
from service.settings import Settings
from service.triggers import triggers
from service.variables import secrets as variables
from service.vault.bodies import CLEAR
from service.vault.encryption import Vault
from service.vault.master_keys import new_key, parse_keys
from service.vault.reencrypt import EncryptedTable

log = structlog.get_logger()

FILE: Final = "master-key"
_TABLES: Final[tuple[EncryptedTable, ...]] = (
    variables.ENCRYPTED,
    certificates.ENCRYPTED,
    checks.ENCRYPTED,
    groups.ENCRYPTED,
    locations.ENCRYPTED,
    alert_channels.ENCRYPTED,
    triggers.ENCRYPTED,
)


async def open_vault(settings: Settings, database: Database, *, may_make: bool = True) -> Vault:
    """The vault that all stored values open in; those of an older key are encrypted again.

    What an earlier version has left in clear is encrypted, too. `may_make`: a key that is missing
    is made, unless something is encrypted already.

    Raises:
        SettingsError: there is no key, or not the one that most values were encrypted with.
    """
    heads = await database.read(_read_heads)
    by_keys = heads - {CLEAR}
    vault = _load_vault(settings, may_make=may_make and not by_keys)
    if not all(map(vault.knows, by_keys)):
        _require_key(settings, vault, await database.read(_count_heads))
    if not all(map(vault.is_current, heads)):
        log.info("vault.sealed_anew", values=await database.write(lambda c: _rotate(c, vault)))
    return vault


def _read_heads(connection: Connection) -> frozenset[bytes]:
    return frozenset[bytes]().union(*(table.heads(connection) for table in _TABLES))


def _count_heads(connection: Connection) -> Counter[bytes]:
    """How many rows there are of each beginning."""
    return Counter(table.head(row) for table in _TABLES for row in table.rows(connection))


def _require_key(settings: Settings, vault: Vault, counts: Counter[bytes]) -> None:
    """A few values of another key are damaged, and keep nobody from starting.

    By number: after a change of keys a damaged value is left of the key before, and that key alone
    would open nothing else.

    Raises:
        SettingsError: they are not a few.
    """
    by_keys = Counter({head: rows for head, rows in counts.items() if head != CLEAR})
    unknown = Counter({head: rows for head, rows in by_keys.items() if not vault.knows(head)})
    if unknown.total() * 2 >= by_keys.total():
        [(head, _)] = unknown.most_common(1)
        raise _wrong_key_error(settings, head[1:].hex())
    keys = sorted(head[1:].hex() for head in unknown)
    log.error("vault.keys_unknown", keys=keys, values=unknown.total())


def _rotate(connection: Connection, vault: Vault) -> int:
    return sum(table.rotate(connection, vault) for table in _TABLES)


def _load_vault(settings: Settings, *, may_make: bool) -> Vault:
    if settings.master_keys:
        return Vault(settings.master_keys)
    file = _key_file(settings)
    try:
        if may_make and not file.exists():
            make_own_file(file, f"{new_key()}\n".encode())
        return Vault(parse_keys(file.read_text(encoding="ascii")))
    except FileNotFoundError as problem:
        raise _unusable_error(
            f"{file}, the key that secrets are encrypted with, is missing"
        ) from problem
    except OSError as problem:
        raise _unusable_error(f"{file} cannot be used ({problem.strerror})") from problem
    except UnicodeDecodeError as problem:
        raise _unusable_error(f"{file} holds no key in hex or base64") from problem
    except ValueError as problem:
        raise SettingsError((f"{file} {problem}",)) from problem


def _unusable_error(what: str) -> SettingsError:
    return SettingsError((f"{what}; restore it, or set SERVICE_MASTER_KEY",))


def _wrong_key_error(settings: Settings, unknown: str) -> SettingsError:
    where = "SERVICE_MASTER_KEY" if settings.master_keys else str(_key_file(settings))
    with_it = f"key {unknown}, with which secrets in the database are encrypted"
    return SettingsError((f"{where} does not hold the {with_it}; add that key at its end",))


def _key_file(settings: Settings) -> Path:
    return settings.database_file.with_name(FILE)
