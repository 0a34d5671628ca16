"""What is said between the agent and a script's process."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from contract.evidence import SentRequest
from contract.requests import BodyType, HttpMethod, HttpRequest, KeyValue
from contract.result import CheckFailed, FailureKind, Timings
from runners.net.http.exchange import HttpResponse
from runners.net.http.response import decode_body, parse_content_type

ScriptPhase = Literal["setup", "teardown"]
LIMIT_BYTES: Final = 256 * 1024
"""The most that passes to a script, and from it: request or response, with the environment."""


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
    """When each phase was over, in ms since the request began."""
    timing_phases: Mapping[str, float]
    """How long each took, in ms."""


class ScriptName(msgspec.Struct, frozen=True):
    """What a script is called."""

    file: str
    """In stacks, as in setup.js, or as its author's file is."""
    words: str
    """In sentences, as in `the setup script`."""


class ScriptJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One script to run."""

    file: str
    """What the script is called in stacks."""
    phase: ScriptPhase
    script: str
    env: Mapping[str, str]
    secret_names: tuple[str, ...]
    """Variables whose new values are secret as well."""
    region: str
    request: ScriptRequest
    """Written by setup, only read by teardown."""
    response: ScriptResponse | None
    """None: there is none yet."""
    snippets: Mapping[str, str]
    """Content by path, as in snippets/login.js."""
    modules: str
    """The folder `node_modules` of the runtime."""
    words: str = "the script"
    """What the script is called in sentences."""
    limit_bytes: int = LIMIT_BYTES

    @property
    def name(self) -> ScriptName:
        """What it is called."""
        return ScriptName(self.file, self.words)

    @property
    def passed_bytes(self) -> int:
        """How much of the limit it takes."""
        return len(msgspec.json.encode((self.request, self.response, self.env)))


class Begun(msgspec.Struct, frozen=True, tag_field="fact", tag="begun"):
    """The script has the process from now on; what ends it is the script's doing."""


class Secret(msgspec.Struct, frozen=True, tag_field="fact", tag="secret"):
    """The script has set a variable that is to be hidden."""

    value: Annotated[str, msgspec.Meta(max_length=16_384)]


class Logged(msgspec.Struct, frozen=True, tag_field="fact", tag="log", rename="camel"):
    """The script has logged a line."""

    after_ms: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    """Since the script began."""
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: Annotated[str, msgspec.Meta(max_length=16_384)]


class Broke(msgspec.Struct, frozen=True, tag_field="fact", tag="failed"):
    """The script has thrown."""

    message: Annotated[str, msgspec.Meta(max_length=16_384)]
    stack: Annotated[str, msgspec.Meta(max_length=16_384)]
    place: Annotated[str, msgspec.Meta(max_length=1_200)] | None = None
    """The user's own line, as in setup.js:3:7. None: it is not known."""


class Done(msgspec.Struct, frozen=True, tag_field="fact", tag="done"):
    """The script has come to its end."""

    env: dict[str, str]
    printed: bool
    """Past the console, so that there is more to read than facts."""
    request: ScriptRequest | None = None
    """None: it was a teardown script."""
    body: str | None = None
    """Of the response. None: it was a setup script."""


Fact = Begun | Secret | Logged | Broke | Done

encode_job: Final = msgspec.json.Encoder().encode
decode_fact: Final = msgspec.json.Decoder(Fact).decode
"""Raises msgspec.DecodeError, or its subclass ValidationError."""


_MAX_URL_CHARS: Final = 2048
_UTF_8: Final = "utf_8"


def render(request: HttpRequest) -> ScriptRequest:
    """The request as setup sees it: its `{{NAME}}` are not filled yet."""
    return ScriptRequest(
        method=request.method.value,
        url=request.url,
        body=request.body,
        headers=_key_by_name(request.headers),
        query_parameters=_key_by_name(request.query_parameters),
    )


def apply_changes(request: HttpRequest, wish: ScriptRequest, *, file: str) -> HttpRequest:
    """The request as a setup script left it; what it did not touch stays as it was.

    Raises:
        CheckFailed: of kind SCRIPT, when it cannot be sent like that.
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
    """The request as teardown sees it: as it went out."""
    return ScriptRequest(
        method=sent.method,
        url=sent.url,
        body=sent.body,
        headers=sent.headers,
        query_parameters=dict(parse_qsl(urlsplit(sent.url).query, keep_blank_values=True)),
    )


def render_response(answer: HttpResponse, timings: Timings) -> ScriptResponse:
    """The response as teardown sees it."""
    phases = _name_phases(timings)
    return ScriptResponse(
        status_code=answer.head.status_code,
        status_text=answer.head.status_text,
        body=decode_body(answer.body, _find_charset(answer)),
        headers=answer.head.headers,
        timings=_compute_offsets(phases),
        timing_phases=phases,
    )


def replace_body(answer: HttpResponse, body: str) -> HttpResponse:
    """The answer as a teardown script left it."""
    if body == decode_body(answer.body, _find_charset(answer)):
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
    """Who may see a value does not change with it."""
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
    """A body that a script gives to a request without one is sent as it is."""
    if request.body_type is BodyType.NONE and wish.body and wish.body != request.body:
        return BodyType.RAW
    return request.body_type


def _refuse(file: str, why: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, f"After {file} {why}.", {"script": file})


def _name_phases(timings: Timings) -> dict[str, float]:
    """As the established service names them: TLS falls into `firstByte`."""
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
    """When each phase was over, from the start."""
    lookup = phases["wait"] + phases["dns"]
    connect = lookup + phases["tcp"]
    return {
        "socket": phases["wait"],
        "lookup": lookup,
        "connect": connect,
        "response": connect + phases["firstByte"],
        "end": phases["total"],
    }
