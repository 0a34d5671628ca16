"""A vault with a key of its own."""

from service.vault.keys import KEY_BYTES
from service.vault.sealing import Vault

MASTER_KEY = bytes(range(KEY_BYTES))


def a_vault(*keys: bytes) -> Vault:
    return Vault(keys or (MASTER_KEY,))
