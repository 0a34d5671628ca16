"""Checks between their stored form and their whole one: the secrets in them are encrypted.

A spec with a secret is encrypted as a whole, so that a claim decrypts it at once; a spec without
is stored as it is, and a claim tells it by its first byte.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from service.checks.model import CheckRow
from service.http.errors import UnreadableError
from service.vault import bodies
from service.vault.bodies import Bodies
from service.vault.encryption import VERSION_BYTE, DecryptionError, Place, Vault

_BODIES: Final = ("doc", "applied")
UNREADABLE_SPEC: Final = bytes([VERSION_BYTE])
"""Stands for a spec with a secret that cannot be decrypted. This cannot be either, so that the
runs end as our fault instead of requesting something else."""


def encrypt(
    columns: Mapping[str, Any], vault: Vault, *, account_id: str, check_id: str
) -> dict[str, Any]:
    """The columns of a check as they are stored; `doc`, `applied` and `spec` are among them."""
    place = _place(account_id, check_id, "secrets")
    bare, secrets = bodies.encrypt({name: columns[name] for name in _BODIES}, vault, place)
    spec = columns["spec"]
    if secrets is not None and spec != UNREADABLE_SPEC:
        spec = encrypt_spec(spec, vault, account_id=account_id, check_id=check_id)
    return {**columns, **bare, "secrets": secrets, "spec": spec}


def decrypt(row: CheckRow, vault: Vault) -> CheckRow:
    """The check with its secrets in it.

    Raises:
        DecryptionError: they cannot be decrypted.
    """
    stored = {"doc": row.doc, "applied": row.applied}
    named = {"account_id": row.account_id, "check_id": row.id}
    whole: dict[str, Any] = dict(decrypt_bodies(stored, row.secrets, vault, **named))
    return replace(row, **whole, secrets=None)


def decrypt_bodies(
    stored: Bodies, secrets: bytes | None, vault: Vault, *, account_id: str, check_id: str
) -> Bodies:
    """`doc` and `applied` of a check with its secrets in them.

    Raises:
        DecryptionError: they cannot be decrypted.
    """
    return bodies.decrypt(stored, secrets, vault, _place(account_id, check_id, "secrets"))


def decrypt_for_people(row: CheckRow, vault: Vault) -> CheckRow:
    """The check with its secrets, or an error that tells a person how to repair it.

    Raises:
        UnreadableError: they cannot be decrypted.
    """
    try:
        return decrypt(row, vault)
    except DecryptionError as problem:
        raise UnreadableError(
            f"The stored secrets of the check {row.id} cannot be read: {problem}."
            " Replace the check with PUT, or delete it."
        ) from problem


def is_encrypted(spec: bytes) -> bool:
    """Whether a stored spec has to be opened first: it is no JSON, so that damage is found too."""
    return not (spec.startswith(b"{") and spec.endswith(b"}"))


def encrypt_spec(spec: bytes, vault: Vault, *, account_id: str, check_id: str) -> bytes:
    """A spec that holds a secret, as it is stored."""
    return vault.encrypt(spec.decode(), _place(account_id, check_id, "spec"))


def decrypt_spec(spec: bytes, vault: Vault, *, account_id: str, check_id: str) -> bytes:
    """A stored spec as JSON.

    Raises:
        DecryptionError: it cannot be decrypted.
    """
    if not is_encrypted(spec):
        return spec
    return vault.decrypt(spec, _place(account_id, check_id, "spec")).encode()


def _place(account_id: str, check_id: str, column: str) -> Place:
    return ("check", account_id, check_id, column)
