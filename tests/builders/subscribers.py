"""Subscribers of status pages, and the mails that they get."""

import re
from dataclasses import dataclass, replace
from typing import Any

from service.mail.mailer import Mailer
from service.mail.model import Sender
from service.mail.rules import parse_server
from service.subscriptions.mails import Links, StatusMails
from tests.fakes.clock import FakeClock
from tests.servers.public_api import PEPPER, Answer, PublicApi
from tests.servers.smtp import MailBox

ANN = "ann@example.com"


@dataclass(frozen=True)
class Visitor:
    """Somebody without an API key, and the loop that sends mails."""

    api: PublicApi
    clock: FakeClock
    box: MailBox
    mails: StatusMails

    async def ask(self, method: str, url: str, **more: Any) -> Answer:
        """One request."""
        target = url if url.startswith("http") else self.api.url + url
        async with self.api.http.request(method, target, **more) as answer:
            is_json = answer.content_type == "application/json"
            body = await answer.json() if is_json else await answer.text()
            return Answer(answer.status, body, {k.lower(): v for k, v in answer.headers.items()})

    async def subscribe(self, address: str = ANN, **more: Any) -> Answer:
        """Subscribe to the page `shop`."""
        path = "/status-pages/shop/subscriptions"
        return await self.ask("POST", path, json={"address": address}, **more)

    async def send(self) -> int:
        """One round of the loop."""
        return await self.mails.send_due(self.api.database)

    async def confirmed(self, address: str = ANN) -> None:
        """Subscribe, and confirm by the link in the mail."""
        assert (await self.subscribe(address)).status == 202
        await self.send()
        answer = await self.ask("POST", self.link(address))
        assert answer.status == 200, answer.body

    def link(self, address: str = ANN) -> str:
        """The link in the newest mail to the address."""
        text = self.box.to(address)[-1].get_content()
        return re.findall(r"http://\S+/status-subscriptions/\S+", text)[-1]


def a_visitor(api: PublicApi, box: MailBox) -> Visitor:
    """The API sends mails from now on, and its clock stands still."""
    clock = FakeClock()
    api.app.state.backend = replace(api.backend, clock=clock, sends_status_mails=True)
    mailer = Mailer(parse_server(box.url), Sender("status@picket.test"), limit_s=5)
    mails = StatusMails(clock, mailer, Links(PEPPER, api.url))
    return Visitor(api, clock, box, mails)
