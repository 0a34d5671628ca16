"""A real SMTP server on loopback that keeps what it takes, or refuses as it is told."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

TAKEN = "250 OK"


@dataclass
class MailBox:
    """What the server has taken, and what it says to the next mails."""

    url: str = ""
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    said_to_recipient: str = TAKEN
    """An answer that does not begin with 250 refuses the address."""
    said_to_data: str = TAKEN
    """An answer that does not begin with 250 refuses the mail."""
    logins: list[bytes] = field(default_factory=list)
    was_encrypted: bool = False
    waits: bool = False
    """Whether it answers nobody."""
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def to(self, address: str) -> list[EmailMessage]:
        """The mails to one address."""
        return [mail for mail in self.mails if mail["To"] == address]

    async def wait_for(self, count: int, *, limit_s: float = 20.0) -> list[EmailMessage]:
        """As soon as there are so many mails, all of them."""
        async with asyncio.timeout(limit_s):
            while len(self.mails) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.mails

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        """Take an address or refuse it."""
        if self.waits:
            await asyncio.Event().wait()
        if self.said_to_recipient.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.said_to_recipient

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        """Take a mail or refuse it."""
        if self.said_to_data.startswith("250"):
            content = envelope.original_content or b""
            mail = message_from_bytes(content, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.was_encrypted = server.transport.get_extra_info("ssl_object") is not None
            self.recipients += envelope.rcpt_tos
            self.mails.append(mail)
            self._arrived.set()
        return self.said_to_data

    def authenticate(self, data: LoginPassword) -> AuthResult:
        """Let in whoever says the word."""
        self.logins.append(data.login)
        return AuthResult(success=data.password == b"pass@word")


@asynccontextmanager
async def serve_smtp(
    *,
    tls: ssl.SSLContext | None = None,
    has_login: bool = False,
    port: int = 0,
    box: MailBox | None = None,
) -> AsyncIterator[MailBox]:
    """Serve; with `tls` it offers STARTTLS, with a login it asks for a password."""
    box = box or MailBox()
    connections: set[SMTP] = set()

    def connect() -> SMTP:
        handler = SMTP(
            box,
            hostname="mail.test",
            tls_context=tls,
            enable_SMTPUTF8=True,
            auth_require_tls=False,
            authenticator=lambda *told: box.authenticate(told[-1]) if has_login else None,
            loop=asyncio.get_running_loop(),
        )
        connections.add(handler)
        return handler

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", port)
    box.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield box
    finally:
        server.close()
        await _end(connections)
        await server.wait_closed()


async def _end(connections: set[SMTP]) -> None:
    tasks = []
    for each in connections:
        if each.transport is not None:
            each.transport.close()
        if each._handler_coroutine is not None:
            each._handler_coroutine.cancel()
            tasks.append(each._handler_coroutine)
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
