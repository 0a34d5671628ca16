"""Client certificates as they are stored."""

from dataclasses import dataclass, field
from typing import Literal

from service.vault.encryption import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """A client certificate as it is stored."""

    id: str
    account_id: str
    host: str
    """Exact, or a glob."""
    cert: str
    """PEM."""
    ca: str | None
    """PEM. None: the usual roots."""
    key: bytes = field(repr=False)
    """Encrypted for `place("key")`."""
    passphrase: bytes | None = field(repr=False)
    """Encrypted for `place("passphrase")`. None: the key is not encrypted."""
    expires_ms: int
    created_ms: int
    serial: int
    """Counts the certificates of an account; the newest has the highest."""

    def place(self, column: Literal["key", "passphrase"]) -> Place:
        """Where a secret of it is encrypted for; under another host it opens no more."""
        return place_of(self.account_id, self.id, self.host, column)


def place_of(
    account_id: str, certificate_id: str, host: str, column: Literal["key", "passphrase"]
) -> Place:
    """Where a secret of a certificate is encrypted for."""
    return ("client_certificate", account_id, certificate_id, host, column)
