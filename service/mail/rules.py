"""What is an address, and what the settings of the mail server mean."""

import re
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.utils import parseaddr
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from service.mail.model import Sender, SmtpServer

_PORTS: Final = {"smtp": 25, "smtps": 465}
_SUBMISSION: Final = 587
_USE: Final = "use smtp://user:password@host:587 or smtps://user:password@host:465"
_MOST_LETTERS: Final = 254
"""The longest address that SMTP transports (RFC 5321, 4.5.3.1.3)."""
_MOST_LOCAL_LETTERS: Final = 64
_LOCAL: Final = re.compile(r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]+")
_DOMAIN: Final = re.compile(r"(?!-)[^\s@<>()\[\]\\,;:\"/\x00-\x1f\x7f]+(?<!-)")
_ADDRESS_USE: Final = "use one as in ann@example.com"


def find_address_problem(text: str) -> str | None:
    """Why a text is no mail address that can be written to. None: it is one."""
    local, at, domain = text.rpartition("@")
    if not at:
        return f"is no mail address; {_ADDRESS_USE}"
    if len(text) > _MOST_LETTERS or len(local) > _MOST_LOCAL_LETTERS:
        return f"is too long for a mail address; {_ADDRESS_USE}"
    labels = domain.split(".")
    if not _LOCAL.fullmatch(local) or local.startswith(".") or local.endswith("."):
        return f"is no mail address: the part before the @ is wrong; {_ADDRESS_USE}"
    if ".." in local or not all(_DOMAIN.fullmatch(label) for label in labels):
        return f"is no mail address: the part after the @ is wrong; {_ADDRESS_USE}"
    return None


def parse_server(text: str) -> SmtpServer:
    """The server of an address such as `smtp://user:password@mail.example:587`.

    A password is sent through TLS only; to the machine itself it may go without.

    Raises:
        ValueError: it is none; the sentence holds no password.
    """
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError:
        raise ValueError(f"is no address of a mail server; {_USE}") from None
    if url.scheme not in _PORTS:
        raise ValueError(f"is no address that begins with smtp:// or smtps://; {_USE}")
    if not host or url.path.strip("/") or url.query or url.fragment:
        raise ValueError(f"needs a host, and nothing behind it but a port; {_USE}")
    is_secret = url.password is not None
    default = _SUBMISSION if url.scheme == "smtp" and is_secret else _PORTS[url.scheme]
    return SmtpServer(
        host=host,
        port=port or default,
        is_tls_from_start=url.scheme == "smtps",
        is_starttls_required=url.scheme == "smtp" and is_secret and not _is_own_machine(host),
        **_credentials(url),
    )


def _credentials(url: SplitResult) -> dict[str, str | None]:
    if (url.username is None) != (url.password is None):
        raise ValueError(f"has a user without a password or the other way round; {_USE}")
    return {
        "username": unquote(url.username) if url.username else None,
        "password": unquote(url.password) if url.password else None,
    }


def _is_own_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_sender(text: str) -> Sender:
    """The sender of a text such as `Picket <status@example.com>`.

    Raises:
        ValueError: it has no mail address.
    """
    name, address = parseaddr(text)
    if find_address_problem(address) is not None:
        raise ValueError(f"is {text}; use an address as in Picket <status@example.com>")
    try:
        Address(display_name=name, addr_spec=address)
    except (ValueError, HeaderParseError):
        raise ValueError(f"is {text}; use an address as in Picket <status@example.com>") from None
    return Sender(address, name)
