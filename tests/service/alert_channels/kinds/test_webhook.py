import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from service.alert_channels.kinds.webhook import build_request
from service.alert_channels.model import AnyAlert
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alerting.model import AlertType
from tests.builders.alert_channels import a_certificate_alert, a_location_alert, an_alert
from tests.builders.outgoing import BASE_URL, outgoing, tools
from tests.fakes.clock import START_MS
from tests.servers.receiver import Got, serve_receiver

PAGE = (Path(__file__).parents[4] / "docs/alert-channels.md").read_text(encoding="utf-8")
OWN: dict[str, Any] = {"template": None, "headers": [], "queryParameters": []}


async def sent(alert: AnyAlert | None = None, *, path: str = "/", **config: Any) -> Got:
    variables = config.pop("variables", None)
    async with serve_receiver() as receiver:
        config["url"] = receiver.url + path
        request = build_request(outgoing("WEBHOOK", alert, variables=variables, **config))
        await tools().http.send(request)
    (got,) = receiver.got
    return got


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "HEAD", "DELETE", "PATCH"])
async def test_each_method_is_sent_with_headers_parameters_and_variables(method: str) -> None:
    got = await sent(
        method=method,
        path="/{{CHECK_ID}}?a=b&t={{ALERT_TITLE}}",
        template='{"title": {{{json ALERT_TITLE}}}, "key": "{{{SECRET}}}"}',
        headers=[{"key": "Authorization", "value": "Bearer {{SECRET}}"}],
        queryParameters=[{"key": "q", "value": "{{CHECK_NAME}} & co"}],
        variables={"SECRET": "x y", "CHECK_ID": "not mine"},
    )
    assert (got.method, got.path) == (method, "/check-1")
    assert got.query == {
        "a": "b",
        "t": "[Failing] Orders: HTTP 503, expected 200",
        "q": "Orders & co",
    }
    assert got.headers["authorization"] == "Bearer x y"
    if method in {"GET", "HEAD"}:
        assert got.body == b""
    else:
        assert got.json == {"title": "[Failing] Orders: HTTP 503, expected 200", "key": "x y"}


async def test_without_a_template_the_body_has_every_variable() -> None:
    got = await sent(**OWN)
    assert got.headers["content-type"] == "application/json"
    body = got.json
    assert body["alertTitle"] == "[Failing] Orders: HTTP 503, expected 200"
    assert (body["alertType"], body["isReminder"], body["responseTime"]) == (
        "ALERT_FAILURE",
        False,
        123,
    )
    assert body["resultLink"] == f"{BASE_URL}/checks/check-1/results/result-1"
    assert (body["startedAt"], body["tags"]) == ("2026-11-21T10:00:00.000Z", ["team:shop", "eu"])
    assert (body["isRecovery"], body["incidentKey"]) == (False, "picket-check-check-1")


async def test_certificates_and_locations_have_their_variables() -> None:
    template = "{{{ALERT_TITLE}}}|{{ALERT_TYPE}}|{{SSL_CHECK_DOMAIN}}|{{SSL_DAYS_REMAINING}}"
    got = await sent(a_certificate_alert(6.5), template=template)
    assert got.body.decode() == (
        "[Certificate] Orders: shop.test expires in 6 days|ALERT_SSL|shop.test|6"
    )
    got = await sent(a_location_alert(), template=template)
    assert got.body.decode() == "[No agent] Cellar: 3 checks do not run|LOCATION_DOWN||"


async def test_the_example_of_the_page_verifies_what_is_sent() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    got = await sent(webhookSecret="s3cr3t", **OWN)
    assert got.headers["x-picket-delivery"] == "notification-1"
    assert got.headers["x-picket-timestamp"] == str(START_MS // 1000)
    now = START_MS / 1000 + 60
    verify = names["verify"]
    assert verify("s3cr3t", got.headers, got.body, now)
    assert not verify("other", got.headers, got.body, now)
    assert not verify("s3cr3t", got.headers, got.body + b" ", now)
    assert not verify("s3cr3t", got.headers, got.body, now + 3600)
    assert not verify("s3cr3t", got.headers, got.body, time.time() + 1e9)
    moved = {**got.headers, "x-picket-timestamp": str(int(now))}
    assert not verify("s3cr3t", moved, got.body, now)


async def test_without_a_secret_nothing_is_signed() -> None:
    got = await sent(webhookSecret=None, **OWN)
    assert "x-picket-signature" not in got.headers


async def test_no_header_of_a_channel_takes_the_place_of_the_signature() -> None:
    forged = [{"key": "X-Picket-Signature", "value": "forged"}]
    got = await sent(webhookSecret="s", template="x", headers=forged)
    assert got.headers["x-picket-signature"] != "forged"


def preset(name: str, alert: AnyAlert | None = None) -> Any:
    one = outgoing("WEBHOOK", alert, webhookType=f"WEBHOOK_{name}", **OWN)
    body = build_request(one).body
    assert body is not None
    return Got("POST", "/", {}, {}, body).json


def test_each_preset_has_the_form_of_its_receiver() -> None:
    recovery = an_alert(AlertType.RECOVERY)
    title, key = "[Failing] Orders: HTTP 503, expected 200", "picket-check-check-1"
    card = preset("MSTEAMS")["attachments"][0]
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["content"]["body"][0]["text"] == title
    (embed,) = preset("DISCORD")["embeds"]
    assert (embed["title"], embed["color"]) == (title, 0xD32F2F)
    incident = preset("INCIDENTIO")
    assert (incident["deduplication_key"], incident["status"]) == ("check-1", "firing")
    assert preset("INCIDENTIO", recovery)["status"] == "resolved"
    assert preset("FIREHYDRANT")["idempotency_key"] == key
    assert preset("FIREHYDRANT", recovery)["status"] == "CLOSED"
    assert (preset("GITLAB_ALERT")["fingerprint"], preset("GITLAB_ALERT")["severity"]) == (
        key,
        "critical",
    )
    assert preset("GITLAB_ALERT", recovery)["end_time"] == "2026-11-21T10:01:00.000Z"
    assert preset("ILERT")["alertKey"] == key
    assert preset("ILERT", recovery)["eventType"] == "RESOLVE"
    assert preset("SPLUNK")["entity_id"] == key
    assert preset("SPLUNK", recovery)["message_type"] == "RECOVERY"
    assert preset("CORALOGIX")["logEntries"][0]["severity"] == 5
    assert (preset("ROOTLY")["title"], preset("SPIKESH")["id"]) == (title, key)
    assert preset("ROOTLY", recovery)["status"] == "RESOLVED"


def test_telegram_gets_a_form_with_nothing_that_ends_a_tag() -> None:
    one = outgoing(
        "WEBHOOK",
        an_alert(check_name="<b>&"),
        webhookType="WEBHOOK_TELEGRAM",
        url="https://api.telegram.org/botK/sendMessage",
        template=None,
        headers=[],
        queryParameters=[{"key": "chat_id", "value": "7"}],
    )
    request = build_request(one)
    assert request.url == "https://api.telegram.org/botK/sendMessage?chat_id=7"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    form = parse_qs((request.body or b"").decode())
    assert form["parse_mode"] == ["HTML"]
    assert form["text"][0].startswith("<b>[Failing] &lt;b&gt;&amp;: HTTP 503, expected 200</b>\n")


def test_a_template_that_cannot_be_filled_in_is_given_up() -> None:
    one = outgoing("WEBHOOK", template="{{#gt ALERT_TITLE 1}}{{/gt}}")
    with pytest.raises(ChannelError) as caught:
        build_request(one)
    assert caught.value.fault is Fault.FINAL
    assert caught.value.message.startswith(
        '"config.template" calls gt, whose left side is no number'
    )


def test_each_try_sends_the_same() -> None:
    one = outgoing("WEBHOOK", template="{{$UUID}} {{$RANDOM_NUMBER}}")
    assert build_request(one).body == build_request(one).body
