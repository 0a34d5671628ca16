"""Requests and responses as setup and teardown scripts see and change them. Pure."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from contract.http_evidence import SentRequest
from contract.requests import BodyType, HttpMethod, HttpRequest, KeyValue
from contract.result import FailureKind, Timings
from runners.kit.failures import CheckFailed
from runners.kit.http.body import as_text, content_type
from runners.kit.http.chain import Answer
from runners.kit.scripts.messages import ScriptRequest, ScriptResponse

_MAX_URL_CHARS: Final = 2048
_UTF_8: Final = "utf_8"


def shown(request: HttpRequest) -> ScriptRequest:
    """The request as setup sees it: its `{{NAME}}` are not filled yet."""
    return ScriptRequest(
        method=request.method.value,
        url=request.url,
        body=request.body,
        headers=_by_name(request.headers),
        query_parameters=_by_name(request.query_parameters),
    )


def changed(request: HttpRequest, wish: ScriptRequest, *, file: str) -> HttpRequest:
    """The request as a setup script left it; what it did not touch stays as it was.

    Raises:
        CheckFailed: of kind SCRIPT, when it cannot be sent like that.
    """
    before = shown(request)
    if wish == before:
        return request
    return msgspec.structs.replace(
        request,
        method=_method(wish.method, file),
        url=_url(wish.url, file),
        body=wish.body,
        body_type=_body_type(request, wish),
        headers=_pairs(request.headers, before.headers, wish.headers),
        query_parameters=_pairs(
            request.query_parameters, before.query_parameters, wish.query_parameters
        ),
    )


def as_sent(sent: SentRequest) -> ScriptRequest:
    """The request as teardown sees it: as it went out."""
    return ScriptRequest(
        method=sent.method,
        url=sent.url,
        body=sent.body,
        headers=sent.headers,
        query_parameters=dict(parse_qsl(urlsplit(sent.url).query, keep_blank_values=True)),
    )


def answered(answer: Answer, timings: Timings) -> ScriptResponse:
    """The response as teardown sees it."""
    phases = _phases(timings)
    return ScriptResponse(
        status_code=answer.head.status_code,
        status_text=answer.head.status_text,
        body=as_text(answer.body, _charset(answer)),
        headers=answer.head.headers,
        timings=_offsets(phases),
        timing_phases=phases,
    )


def with_body(answer: Answer, body: str) -> Answer:
    """The answer as a teardown script left it."""
    if body == as_text(answer.body, _charset(answer)):
        return answer
    encoded = body.encode()
    return msgspec.structs.replace(
        answer, body=encoded, body_bytes=len(encoded), body_cut=False, charset=_UTF_8
    )


def _charset(answer: Answer) -> str:
    return answer.charset or content_type(answer.head.headers.get("content-type")).charset


def _by_name(pairs: tuple[KeyValue, ...]) -> dict[str, str]:
    return {pair.key: pair.value for pair in pairs}


def _pairs(
    pairs: tuple[KeyValue, ...], before: Mapping[str, str], wish: Mapping[str, str]
) -> tuple[KeyValue, ...]:
    """Who may see a value does not change with it."""
    if wish == before:
        return pairs
    locked = {pair.key.lower() for pair in pairs if pair.locked}
    return tuple(
        KeyValue(key=key, value=value, locked=key.lower() in locked) for key, value in wish.items()
    )


def _method(wish: str, file: str) -> HttpMethod:
    try:
        return HttpMethod(wish.upper())
    except ValueError:
        known = ", ".join(HttpMethod)
        raise _refused(file, f"request.method is {wish[:20]}; use one of {known}") from None


def _url(wish: str, file: str) -> str:
    if 0 < len(wish) <= _MAX_URL_CHARS:
        return wish
    raise _refused(
        file, f"request.url has {len(wish)} characters; use 1 to {_MAX_URL_CHARS} of them"
    )


def _body_type(request: HttpRequest, wish: ScriptRequest) -> BodyType:
    """A body that a script gives to a request without one is sent as it is."""
    if request.body_type is BodyType.NONE and wish.body and wish.body != request.body:
        return BodyType.RAW
    return request.body_type


def _refused(file: str, why: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, f"After {file} {why}.", {"script": file})


def _phases(timings: Timings) -> dict[str, float]:
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


def _offsets(phases: Mapping[str, float]) -> dict[str, float]:
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
