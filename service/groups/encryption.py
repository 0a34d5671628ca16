"""Groups between their stored form and their whole one: what is secret in them is sealed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.groups.model import GroupRow, place_of
from service.http.errors import UnreadableError
from service.vault import bodies
from service.vault.bodies import Body
from service.vault.encryption import UnsealableError, Vault


def encrypt(doc: Body, vault: Vault, *, account_id: str, group_id: int) -> Mapping[str, Any]:
    """The columns that hold a group's body."""
    bare, secrets = bodies.encrypt({"doc": doc}, vault, place_of(account_id, group_id))
    return {**bare, "secrets": secrets}


def decrypt(group: GroupRow, vault: Vault) -> GroupRow:
    """The group with its secrets in it.

    Raises:
        UnsealableError: they do not open.
    """
    whole: dict[str, Any] = dict(
        bodies.decrypt({"doc": group.doc}, group.secrets, vault, group.place)
    )
    return replace(group, **whole, secrets=None)


def readable(group: GroupRow, vault: Vault) -> GroupRow:
    """The group with its secrets, or an error that tells a person how to repair it.

    Raises:
        UnreadableError: they do not open.
    """
    try:
        return decrypt(group, vault)
    except UnsealableError as problem:
        raise UnreadableError(
            f"The stored secrets of the check group {group.id} cannot be read: {problem}."
            " Set the group up anew by PUT."
        ) from problem
