"""Sends mails by SMTP; what goes wrong comes back as data."""

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime
from typing import Final

import aiosmtplib

from service.mail.model import MailFailure, Message, Sender, SmtpServer

_LIMIT_S: Final = 60.0
"""For one mail, from the connection to the server's last word."""
_LEAVE_S: Final = 2.0
_MOST_LETTERS: Final = 300
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Control characters, and all that Python takes for the end of a line: no header may have them."""


class _AsciiOnlyError(Exception):
    """The server cannot take an address with letters beyond ASCII."""


class Mailer:
    """The way out for mails, through one server."""

    def __init__(self, server: SmtpServer, sender: Sender, *, limit_s: float = _LIMIT_S) -> None:
        self._server = server
        self._sender = sender
        self._limit_s = limit_s

    async def send(self, message: Message) -> MailFailure | None:
        """Send a mail. None: the server has taken it."""
        try:
            mail = build_mail(message, self._sender)
            async with asyncio.timeout(self._limit_s):
                await self._hand_over(mail, message.to)
        except _AsciiOnlyError:
            reason = f"The mail server {self._server.host} takes ASCII addresses only."
            return MailFailure(reason, is_permanent=True, is_of_address=True)
        except (MessageError, ValueError) as problem:
            reason = f"It cannot be written as a mail: {_clip(str(problem))}"
            return MailFailure(reason, is_permanent=True)
        except (aiosmtplib.SMTPException, OSError) as problem:
            return self._failure(problem)
        return None

    async def _hand_over(self, mail: EmailMessage, to: str) -> None:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.is_tls_from_start,
            # None: where the server offers it.
            start_tls=_start_tls(server),
            timeout=self._limit_s,
        )
        try:
            await client.connect()
            if not (to.isascii() or client.supports_extension("smtputf8")):
                raise _AsciiOnlyError
            await client.send_message(mail, sender=self._sender.address, recipients=[to])
            # It has taken the mail: how it takes leave must not make anybody send it again.
            with suppress(aiosmtplib.SMTPException, OSError):
                await client.quit(timeout=_LEAVE_S)
        finally:
            client.close()

    def _failure(self, problem: Exception) -> MailFailure:
        match problem:
            case aiosmtplib.SMTPRecipientsRefused(recipients=[refused, *_]):
                failure = self._refusal(refused)
                return replace(failure, is_of_address=failure.is_permanent)
            case aiosmtplib.SMTPDataError():
                return self._refusal(problem)
            case aiosmtplib.SMTPResponseException(code=code, message=said):
                # The operator's to put right: the mail itself is as good as before.
                what = f"answered {code}: {_clip(said)}"
            case TimeoutError():
                what = f"did not answer within {self._limit_s:g} s"
            case _:
                what = f"could not be used: {_clip(str(problem))}"
        return MailFailure(f"The mail server {self._server.host} {what}", is_permanent=False)

    def _refusal(self, problem: aiosmtplib.SMTPResponseException) -> MailFailure:
        said = f"{problem.code}: {_clip(problem.message)}"
        reason = f"The mail server {self._server.host} refused the mail with {said}"
        return MailFailure(reason, is_permanent=problem.code >= 500)


def _start_tls(server: SmtpServer) -> bool | None:
    if server.is_tls_from_start:
        return False
    return True if server.is_starttls_required else None


def build_mail(message: Message, sender: Sender) -> EmailMessage:
    """The mail as it is sent; no text of it can begin another header."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address(display_name=_one_line(sender.name), addr_spec=sender.address)
    mail["To"] = message.to
    mail["Subject"] = _one_line(message.subject)
    mail["Date"] = localtime()
    mail["Message-ID"] = f"<{message.key}@{sender.address.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    for name, value in message.headers.items():
        mail[name] = _one_line(value)
    mail.set_content(message.text)
    if message.html is not None:
        mail.add_alternative(message.html, subtype="html")
    return mail


def _one_line(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()


def _clip(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}…"
