"""A vault with a key of its own."""

from service.vault.encryption import Vault
from service.vault.master_keys import KEY_BYTES

MASTER_KEY = bytes(range(KEY_BYTES))


def a_vault(*keys: bytes) -> Vault:
    return Vault(keys or (MASTER_KEY,))
