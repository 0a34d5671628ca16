"""Groups between their stored form and their whole one: the secrets in them are encrypted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Row

from service.groups import store
from service.groups.model import GroupRow, place_of
from service.http.errors import UnreadableError
from service.vault import bodies
from service.vault.bodies import Body
from service.vault.encryption import DecryptionError, Vault
from service.vault.reencrypt import EncryptedTable


def encrypt(doc: Body, vault: Vault, *, account_id: str, group_id: int) -> Mapping[str, Any]:
    """The columns that hold a group's body."""
    bare, secrets = bodies.encrypt({"doc": doc}, vault, place_of(account_id, group_id))
    return {**bare, "secrets": secrets}


def decrypt(group: GroupRow, vault: Vault) -> GroupRow:
    """The group with its secrets in it.

    Raises:
        DecryptionError: they cannot be decrypted.
    """
    whole: dict[str, Any] = dict(
        bodies.decrypt({"doc": group.doc}, group.secrets, vault, group.place)
    )
    return replace(group, **whole, secrets=None)


def decrypt_for_people(group: GroupRow, vault: Vault) -> GroupRow:
    """The group with its secrets in it, or an error that tells a person how to repair it.

    Raises:
        UnreadableError: they cannot be decrypted.
    """
    try:
        return decrypt(group, vault)
    except DecryptionError as problem:
        raise UnreadableError(
            f"The stored secrets of the check group {group.id} cannot be read: {problem}."
            " Replace the group with PUT."
        ) from problem


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    group = decrypt(store.read(row), vault)
    return encrypt(group.doc, vault, account_id=group.account_id, group_id=group.id)


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="groups.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"group_id": str(row.id)},
)
