"""The proxies of locations between their stored form and their whole one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Row

from service.http.errors import UnreadableError
from service.locations import store
from service.locations.model import LocationRow
from service.vault.bodies import CLEAR
from service.vault.encryption import DecryptionError, Place, Vault
from service.vault.reencrypt import EncryptedTable
from service.vault.texts import PROXY_CREDENTIALS


def encrypt(
    proxy_url: str | None, vault: Vault, *, account_id: str, location_id: str
) -> dict[str, Any]:
    """The columns that hold the address of a proxy."""
    shown = PROXY_CREDENTIALS.hide(proxy_url or "") or None
    if proxy_url is None or shown == proxy_url:
        return {"proxy_url": proxy_url, "sealed_proxy_url": None}
    hidden = vault.encrypt(proxy_url, _place(account_id, location_id))
    return {"proxy_url": shown, "sealed_proxy_url": hidden}


def decrypt_proxy(
    shown: str | None, hidden: bytes | None, vault: Vault, *, account_id: str, location_id: str
) -> str | None:
    """The whole address of a proxy. None: there is none.

    Raises:
        DecryptionError: it cannot be decrypted.
    """
    if hidden is None or hidden == CLEAR:
        return shown
    return vault.decrypt(hidden, _place(account_id, location_id))


def decrypt(row: LocationRow, vault: Vault) -> LocationRow:
    """The location with its proxy's credentials.

    Raises:
        DecryptionError: they cannot be decrypted.
    """
    named = {"account_id": row.account_id, "location_id": row.id}
    whole = decrypt_proxy(row.proxy_url, row.sealed_proxy_url, vault, **named)
    return replace(row, proxy_url=whole, sealed_proxy_url=None)


def decrypt_for_people(row: LocationRow, vault: Vault) -> LocationRow:
    """The location with its proxy's credentials, or an error that tells a person how to repair it.

    Raises:
        UnreadableError: they cannot be decrypted.
    """
    try:
        return decrypt(row, vault)
    except DecryptionError as problem:
        raise UnreadableError(
            f"The stored proxyUrl of the private location {row.slug_name} cannot be read:"
            f" {problem}. Replace it with PUT."
        ) from problem


def _place(account_id: str, location_id: str) -> Place:
    return ("private_location", account_id, location_id, "proxy_url")


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    location = decrypt(store.read(row), vault)
    named = {"account_id": location.account_id, "location_id": location.id}
    return encrypt(location.proxy_url, vault, **named)


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="locations.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"location_id": row.id},
)
