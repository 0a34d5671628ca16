"""Mails, the server that takes them, and how that can fail."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """The server that takes the service's mails."""

    host: str
    port: int
    is_tls_from_start: bool
    """Whether the connection begins with TLS (`smtps`)."""
    is_starttls_required: bool
    """Whether a server that offers no STARTTLS gets nothing."""
    username: str | None = None
    """None: it asks for no name."""
    password: str | None = field(default=None, repr=False)
    """None: it asks for none."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who mails come from."""

    address: str
    name: str = ""
    """Shown before the address. Empty: the address stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A mail to one address."""

    key: str
    """Identifies the mail: sent again, it has the same Message-ID."""
    to: str
    subject: str
    text: str
    html: str | None = None
    """The text as HTML. None: the mail has only its text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, such as `List-Unsubscribe`."""


@dataclass(frozen=True, slots=True)
class MailFailure:
    """Why a mail was not taken."""

    reason: str
    """One sentence without a secret."""
    is_permanent: bool
    """Whether the same mail will never be taken: the server refused its address or its content."""
    is_of_address: bool = False
    """Whether no mail to this address will ever be taken."""
