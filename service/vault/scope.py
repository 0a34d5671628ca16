"""What a change of stored things with secrets goes by."""

from dataclasses import dataclass

from service.vault.sealing import Vault


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose things, when, and what seals their secrets."""

    account_id: str
    now_ms: int
    vault: Vault
