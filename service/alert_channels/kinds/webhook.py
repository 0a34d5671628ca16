"""WEBHOOK: any request to any receiver, signed if it has a secret."""

import hashlib
import hmac
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from contract.targets import header_problem
from service.alert_channels.kinds.kind import Kind
from service.alert_channels.kinds.presets import build_preset
from service.alert_channels.kinds.slack import secret_url_problem
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import Fault
from service.alert_channels.sending.http_client import HttpRequest
from service.alert_channels.sending.outgoing import Outgoing
from service.alert_channels.templates.parser import MOST_LETTERS, TemplateError, parse
from service.http.schema import RequestModel, Text, blank_is_none, field_error, judged_by
from service.vault.texts import NotEchoed

_FAULTS: Final = {410: Fault.PERMANENT}
"""Only this status says for good that nobody listens any more; others have come and gone."""
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_MOST_PAIRS: Final = 50
SIGNATURE: Final = "x-picket-signature"
TIMESTAMP: Final = "x-picket-timestamp"
DELIVERY: Final = "x-picket-delivery"
WebhookType = Literal[
    "WEBHOOK_CORALOGIX",
    "WEBHOOK_DISCORD",
    "WEBHOOK_FIREHYDRANT",
    "WEBHOOK_GITLAB_ALERT",
    "WEBHOOK_ILERT",
    "WEBHOOK_INCIDENTIO",
    "WEBHOOK_MSTEAMS",
    "WEBHOOK_ROOTLY",
    "WEBHOOK_SPIKESH",
    "WEBHOOK_SPLUNK",
    "WEBHOOK_TELEGRAM",
]


def template_problem(text: str) -> str | None:
    """Why a text is no template. None: it is one."""
    try:
        parse(text)
    except TemplateError as problem:
        return str(problem)
    return None


Template = Annotated[
    Annotated[Text, Field(max_length=MOST_LETTERS), judged_by(template_problem)] | None,
    BeforeValidator(blank_is_none),
]


class WebhookPair(RequestModel):
    """A header or a query parameter."""

    key: Annotated[Text, Field(min_length=1, max_length=500)]
    value: Annotated[Text, Field(max_length=10_000), judged_by(template_problem), NotEchoed] = ""
    """A secret, locked or not; a template."""
    locked: bool = False
    """Kept as it was sent."""


def _fill_none(pairs: list[WebhookPair] | None) -> list[WebhookPair]:
    return pairs or []


_Pairs = Annotated[list[WebhookPair], Field(max_length=_MOST_PAIRS)] | None


class WebhookConfig(RequestModel):
    """The request that is sent."""

    name: Annotated[Text, Field(max_length=200)] = ""
    """For people."""
    url: Annotated[
        Text,
        Field(min_length=1, max_length=2048),
        judged_by(secret_url_problem),
        judged_by(template_problem),
        NotEchoed,
    ]
    """Where requests go. Kept secret; may hold variables, such as `{{TOKEN}}`."""
    webhook_type: Annotated[WebhookType | None, BeforeValidator(blank_is_none)] = None
    """Whose format the body has if there is no template. Null: that of Picket."""
    method: Literal["GET", "POST", "PUT", "HEAD", "DELETE", "PATCH"] = "POST"
    template: Template = None
    """The body, with variables such as `{{ALERT_TITLE}}`. Null: that of `webhookType`."""
    headers: Annotated[_Pairs, AfterValidator(_fill_none)] = Field(default_factory=list)
    query_parameters: Annotated[_Pairs, AfterValidator(_fill_none)] = Field(default_factory=list)
    webhook_secret: Annotated[
        Annotated[Text, Field(max_length=500), NotEchoed] | None, BeforeValidator(blank_is_none)
    ] = None
    """What requests are signed with. Null: they are not."""

    @model_validator(mode="after")
    def _one_line_headers(self) -> "WebhookConfig":
        for order, pair in enumerate(self.headers or ()):
            if problem := header_problem(pair.key, pair.value):
                raise field_error(f"headers[{order}]", problem)
        return self


class WebhookChannelWrite(ChannelWrite):
    """A channel that sends requests."""

    kind = ChannelType.WEBHOOK
    type: Literal["WEBHOOK"]
    config: WebhookConfig


async def _send(outgoing: Outgoing) -> None:
    answer = await outgoing.tools.http.send(build_request(outgoing))
    answer.raise_for_status(_FAULTS)


def build_request(outgoing: Outgoing) -> HttpRequest:
    """The request of a notification.

    Raises:
        ChannelError: a template cannot be filled in.
    """
    config = outgoing.config
    body, content_type = _build_body(outgoing)
    headers = {
        "content-type": content_type,
        **_fill_pairs(outgoing, "headers"),
        DELIVERY: outgoing.id,
    }
    secret = outgoing.setting("webhookSecret")
    timestamp = str(outgoing.now_ms // 1000)
    headers[TIMESTAMP] = timestamp
    if secret:
        headers[SIGNATURE] = sign(secret, timestamp, body or b"")
    return HttpRequest(
        url=_build_url(outgoing), method=config["method"], headers=headers, body=body
    )


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request: HMAC-SHA256 of its time, a point and its body, in hex."""
    return hmac.digest(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hex()


def _build_url(outgoing: Outgoing) -> str:
    url = outgoing.fill(outgoing.config["url"], "config.url", encodes=True)
    parameters = _fill_pairs(outgoing, "queryParameters")
    if not parameters:
        return url
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), *parameters.items()]
    return urlunsplit(parts._replace(query=urlencode(query)))


def _fill_pairs(outgoing: Outgoing, name: str) -> dict[str, str]:
    """Lower-case names for headers: none of theirs comes beside one of ours."""
    filled: dict[str, str] = {}
    for order, pair in enumerate(outgoing.config[name]):
        key = pair["key"].lower() if name == "headers" else pair["key"]
        filled[key] = outgoing.fill(pair["value"], f"config.{name}[{order}].value", encodes=False)
    return filled


def _build_body(outgoing: Outgoing) -> tuple[bytes | None, str]:
    """The body and its type. None: requests of this method have none."""
    template: Any = outgoing.config["template"]
    if outgoing.config["method"] in _WITHOUT_BODY:
        return None, "application/json"
    if template is not None:
        text = outgoing.fill(template, "config.template", encodes=True)
        return text.encode(), "application/json"
    return build_preset(outgoing, outgoing.config["webhookType"])


WEBHOOK: Final = Kind(write=WebhookChannelWrite, send=_send, secret_fields=("url", "webhookSecret"))
