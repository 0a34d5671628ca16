import socket
import ssl
from dataclasses import replace

import pytest
import trustme

from service.mail.mailer import Mailer
from service.mail.model import Message, Sender
from service.mail.rules import parse_server
from tests.servers.smtp import serve_smtp

SENDER = Sender("status@picket.test", "Picket")
MAIL = Message(key="k1", to="ann@example.com", subject="Orders are down", text="Since 10:00.\n")


def a_mailer(url: str, *, limit_s: float = 10) -> Mailer:
    return Mailer(parse_server(url), SENDER, limit_s=limit_s)


async def test_a_mail_arrives_as_it_was_written() -> None:
    async with serve_smtp() as box:
        mail = replace(MAIL, html="<p>Since</p>", headers={"List-Unsubscribe": "<https://x.test>"})
        assert await a_mailer(box.url).send(mail) is None
    (got,) = box.mails
    assert (got["From"], got["To"], got["Subject"]) == (
        "Picket <status@picket.test>",
        "ann@example.com",
        "Orders are down",
    )
    assert (got["Message-ID"], got["Auto-Submitted"]) == ("<k1@picket.test>", "auto-generated")
    assert got["List-Unsubscribe"] == "<https://x.test>"
    text, html = got.iter_parts()
    assert text.get_content().replace("\r\n", "\n") == "Since 10:00.\n"
    assert "<p>Since</p>" in html.get_content()


async def test_a_mail_that_is_sent_again_has_the_same_id() -> None:
    async with serve_smtp() as box:
        mailer = a_mailer(box.url)
        assert [await mailer.send(MAIL), await mailer.send(MAIL)] == [None, None]
    assert len({mail["Message-ID"] for mail in box.mails}) == 1


async def test_no_text_begins_another_header() -> None:
    async with serve_smtp() as box:
        subject = "Orders\r\nBcc: eve@example.com"
        assert await a_mailer(box.url).send(replace(MAIL, subject=subject)) is None
    (got,) = box.mails
    assert (got["Subject"], got["Bcc"]) == ("Orders Bcc: eve@example.com", None)
    assert box.recipients == ["ann@example.com"]


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x9f", "\x0b", "\x1c"])
async def test_a_name_with_another_end_of_line_is_sent_as_one_line(end: str) -> None:
    async with serve_smtp() as box:
        mail = replace(MAIL, subject=f"Orders{end}are down", headers={"X-Page": f"a{end}b"})
        assert await a_mailer(box.url).send(mail) is None
    (got,) = box.mails
    assert (got["Subject"], got["X-Page"]) == ("Orders are down", "a b")


@pytest.mark.parametrize(
    ("said", "permanent"),
    [("550 no such user", True), ("450 try later", False), ("452 mailbox full", False)],
)
async def test_only_what_the_server_refuses_for_good_is_permanent(
    said: str, *, permanent: bool
) -> None:
    async with serve_smtp() as box:
        mailer = a_mailer(box.url)
        box.said_to_recipient = said
        of_recipient = await mailer.send(MAIL)
        box.said_to_recipient, box.said_to_data = "250 OK", said
        of_data = await mailer.send(MAIL)
    for failure in (of_recipient, of_data):
        assert failure is not None
        assert failure.is_permanent is permanent
        assert said[4:] in failure.reason
    assert box.mails == []


async def test_a_server_that_is_not_there_is_a_temporary_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    failure = await a_mailer(f"smtp://127.0.0.1:{port}").send(MAIL)
    assert failure is not None
    assert not failure.is_permanent


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with serve_smtp() as box:
        box.waits = True
        failure = await a_mailer(box.url, limit_s=0.3).send(MAIL)
    assert failure is not None
    assert not failure.is_permanent


async def test_user_and_password_open_a_server_and_a_wrong_one_is_the_operators_to_fix() -> None:
    async with serve_smtp(has_login=True) as box:
        place = box.url.removeprefix("smtp://")
        assert await a_mailer(f"smtp://ann:pass%40word@{place}").send(MAIL) is None
        failure = await a_mailer(f"smtp://ann:hunter2@{place}").send(MAIL)
    assert box.logins == [b"ann", b"ann"]
    assert failure is not None
    assert not failure.is_permanent
    assert "hunter2" not in failure.reason


async def test_starttls_is_used_where_it_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with serve_smtp(tls=context) as box:
        failure = await a_mailer(box.url).send(MAIL)
        assert failure is not None
        assert box.mails == []
        monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: trusting)
        assert await a_mailer(box.url).send(MAIL) is None
    assert box.was_encrypted


async def test_a_password_is_not_sent_in_clear() -> None:
    async with serve_smtp(has_login=True) as box:
        server = parse_server(box.url.replace("smtp://", "smtp://ann:pass%40word@"))
        mailer = Mailer(replace(server, is_starttls_required=True), SENDER, limit_s=10)
        failure = await mailer.send(MAIL)
    assert failure is not None
    assert box.logins == []
