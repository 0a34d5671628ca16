"""The messages between the agent and a Node process with a setup or teardown script."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from contract.evidence import SentRequest
from contract.requests import BodyType, HttpMethod, HttpRequest, KeyValue
from contract.result import CheckFailed, FailureKind, Timings
from runners.net.http.exchange import HttpResponse
from runners.net.http.response import parse_content_type
from runners.runner import EncodedText

ScriptPhase = Literal["setup", "teardown"]
LIMIT_BYTES: Final = 256 * 1024
"""The largest request or response, with the environment, that passes to or from a script."""


class ScriptRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The global `request` of a script."""

    method: str
    url: str
    body: str
    headers: dict[str, str]
    query_parameters: dict[str, str]


class ScriptResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The global `response` of a teardown script."""

    status_code: int
    status_text: str
    body: str
    headers: Mapping[str, str]
    timings: Mapping[str, float]
    """The end of each phase, in ms since the request began."""
    timing_phases: Mapping[str, float]
    """The duration of each phase, in ms."""


class ScriptName(msgspec.Struct, frozen=True):
    """The names of a script."""

    file: str
    """The name in stack traces: `setup.js`, or that of its author's file."""
    words: str
    """The name in messages, such as `the setup script`."""


class ScriptJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One script to run."""

    file: str
    """The script's name in stack traces."""
    phase: ScriptPhase
    script: str
    env: Mapping[str, str]
    secret_names: tuple[str, ...]
    """Names of secret variables, whose values are secret even if the script changes them."""
    region: str
    request: ScriptRequest
    """The request, which a setup script may change and a teardown script only reads."""
    response: ScriptResponse | None
    """The response. None: this is a setup script."""
    snippets: Mapping[str, str]
    """The contents of snippets by path, such as `snippets/login.js`."""
    modules: str
    """The folder `node_modules` of the runtime."""
    words: str = "the script"
    """The script's name in messages."""
    limit_bytes: int = LIMIT_BYTES

    @property
    def name(self) -> ScriptName:
        """The names of the script."""
        return ScriptName(self.file, self.words)

    @property
    def passed_bytes(self) -> int:
        """The part of the limit that the job uses."""
        return len(msgspec.json.encode((self.request, self.response, self.env)))


class Begun(msgspec.Struct, frozen=True, tag_field="fact", tag="begun"):
    """The script has begun: what ends the process from now on is the script's doing."""


class Secret(msgspec.Struct, frozen=True, tag_field="fact", tag="secret"):
    """The script has set a variable whose value is secret."""

    value: Annotated[str, msgspec.Meta(max_length=16_384)]


class Logged(msgspec.Struct, frozen=True, tag_field="fact", tag="log", rename="camel"):
    """The script has logged a line."""

    after_ms: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    """Milliseconds since the script began."""
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: Annotated[str, msgspec.Meta(max_length=16_384)]


class Broke(msgspec.Struct, frozen=True, tag_field="fact", tag="failed"):
    """The script has thrown."""

    message: Annotated[str, msgspec.Meta(max_length=16_384)]
    stack: Annotated[str, msgspec.Meta(max_length=16_384)]
    place: Annotated[str, msgspec.Meta(max_length=1_200)] | None = None
    """The place in the user's code, such as `setup.js:3:7`. None: it is unknown."""


class Done(msgspec.Struct, frozen=True, tag_field="fact", tag="done"):
    """The script has run to its end."""

    env: dict[str, str]
    printed: bool
    """Whether it wrote to stdout or stderr past the console, so that there is a log to read."""
    request: ScriptRequest | None = None
    """The changed request. None: it was a teardown script."""
    body: str | None = None
    """The changed body of the response. None: it was a setup script."""


Fact = Begun | Secret | Logged | Broke | Done

encode_job: Final = msgspec.json.Encoder().encode
decode_fact: Final = msgspec.json.Decoder(Fact).decode
"""Decodes a fact; raises msgspec.DecodeError or its subclass ValidationError."""


_MAX_URL_CHARS: Final = 2048
_UTF_8: Final = "utf_8"


def render(request: HttpRequest) -> ScriptRequest:
    """Render the request for a setup script, with its `{{NAME}}` templates still unfilled."""
    return ScriptRequest(
        method=request.method.value,
        url=request.url,
        body=request.body,
        headers=_key_by_name(request.headers),
        query_parameters=_key_by_name(request.query_parameters),
    )


def apply_changes(request: HttpRequest, wish: ScriptRequest, *, file: str) -> HttpRequest:
    """Apply a setup script's changes to the request; everything else stays as it was.

    Raises:
        CheckFailed: of kind SCRIPT: the changed request cannot be sent.
    """
    before = render(request)
    if wish == before:
        return request
    return msgspec.structs.replace(
        request,
        method=_parse_method(wish.method, file),
        url=_require_url(wish.url, file),
        body=wish.body,
        body_type=_choose_body_type(request, wish),
        headers=_merge_pairs(request.headers, before.headers, wish.headers),
        query_parameters=_merge_pairs(
            request.query_parameters, before.query_parameters, wish.query_parameters
        ),
    )


def render_sent(sent: SentRequest) -> ScriptRequest:
    """Render the request for a teardown script, as it was sent."""
    return ScriptRequest(
        method=sent.method,
        url=sent.url,
        body=sent.body,
        headers=sent.headers,
        query_parameters=dict(parse_qsl(urlsplit(sent.url).query, keep_blank_values=True)),
    )


def render_response(answer: HttpResponse, timings: Timings) -> ScriptResponse:
    """Render the response for a teardown script."""
    phases = _name_phases(timings)
    return ScriptResponse(
        status_code=answer.head.status_code,
        status_text=answer.head.status_text,
        body=EncodedText(answer.body, _find_charset(answer)).decode(),
        headers=answer.head.headers,
        timings=_compute_offsets(phases),
        timing_phases=phases,
    )


def replace_body(answer: HttpResponse, body: str) -> HttpResponse:
    """Replace the body of a response by the one that a teardown script set."""
    if body == EncodedText(answer.body, _find_charset(answer)).decode():
        return answer
    encoded = body.encode()
    return msgspec.structs.replace(
        answer, body=encoded, body_bytes=len(encoded), body_cut=False, charset=_UTF_8
    )


def _find_charset(answer: HttpResponse) -> str:
    return answer.charset or parse_content_type(answer.head.headers.get("content-type")).charset


def _key_by_name(pairs: tuple[KeyValue, ...]) -> dict[str, str]:
    return {pair.key: pair.value for pair in pairs}


def _merge_pairs(
    pairs: tuple[KeyValue, ...], before: Mapping[str, str], wish: Mapping[str, str]
) -> tuple[KeyValue, ...]:
    """Apply changed pairs; a key that was locked stays locked."""
    if wish == before:
        return pairs
    locked = {pair.key.lower() for pair in pairs if pair.locked}
    return tuple(
        KeyValue(key=key, value=value, locked=key.lower() in locked) for key, value in wish.items()
    )


def _parse_method(wish: str, file: str) -> HttpMethod:
    try:
        return HttpMethod(wish.upper())
    except ValueError:
        known = ", ".join(HttpMethod)
        raise _refuse(file, f"request.method is {wish[:20]}; use one of {known}") from None


def _require_url(wish: str, file: str) -> str:
    if 0 < len(wish) <= _MAX_URL_CHARS:
        return wish
    raise _refuse(
        file, f"request.url has {len(wish)} characters; use 1 to {_MAX_URL_CHARS} of them"
    )


def _choose_body_type(request: HttpRequest, wish: ScriptRequest) -> BodyType:
    """Choose the type of the body: one that a script adds to a request without one is RAW."""
    if request.body_type is BodyType.NONE and wish.body and wish.body != request.body:
        return BodyType.RAW
    return request.body_type


def _refuse(file: str, why: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, f"After {file} {why}.", {"script": file})


def _name_phases(timings: Timings) -> dict[str, float]:
    """Name the phases as existing scripts expect them, with TLS as part of `firstByte`."""
    first_byte = (timings.first_byte or 0) + (timings.tls or 0)
    return {
        "wait": timings.wait or 0,
        "dns": timings.dns or 0,
        "tcp": timings.tcp or 0,
        "firstByte": first_byte,
        "download": timings.download or 0,
        "total": timings.total or 0,
    }


def _compute_offsets(phases: Mapping[str, float]) -> dict[str, float]:
    """Compute when each phase ended, in ms since the request began."""
    lookup = phases["wait"] + phases["dns"]
    connect = lookup + phases["tcp"]
    return {
        "socket": phases["wait"],
        "lookup": lookup,
        "connect": connect,
        "response": connect + phases["firstByte"],
        "end": phases["total"],
    }
