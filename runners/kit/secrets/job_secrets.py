"""Which values of a job are secret."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from random import SystemRandom
from typing import Final
from urllib.parse import unquote, urlsplit

from contract.checks import ApiSpec, HttpRequest, KeyValue, UrlSpec
from contract.job import Job, Variable
from runners.kit.sensitive import SENSITIVE_HEADERS
from runners.kit.variables import Filling, VariableError, fill

SHORTEST_CHARS: Final = 4
"""Shorter secrets stay: hiding each `1` or `yes` would destroy the result and show the secret."""
NEVER_HIDDEN: Final = frozenset(
    {"true", "false", "null", "none", "http", "https", "http://", "https://", "localhost"}
)
"""Words of the formats themselves, whatever variable holds them."""
LINE_CHARS: Final = 16
"""Lines of a secret with several lines are secret by themselves from this length on."""

_PREFIX: Final = "SERVICE_SECRET_"
_NONE: Final[frozenset[str]] = frozenset()
_PEM_EDGE: Final = "-----"
"""How lines begin that all keys have in common."""
_TEMPLATE: Final = re.compile(r"\{{2,3}[^{}]*\}{2,3}")
_NAME: Final = re.compile(r"\{{2,3}\s*([^\s{}]+)")
_SCHEME: Final = re.compile(r"(?i)^(?:basic|bearer|digest|token|apikey|negotiate)\s+")

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
_NO_DICE: Final = SystemRandom()
"""Never asked: a text that needs them is not filled here."""


def is_secret(variable: Variable) -> bool:
    """Whether its value is hidden: somebody said so, or its name does."""
    return variable.secret or variable.locked or variable.key.startswith(_PREFIX)


def secret_names(variables: Iterable[Variable]) -> tuple[str, ...]:
    """What those are called whose values are hidden."""
    return tuple(one.key for one in variables if is_secret(one))


def secrets_of(job: Job) -> tuple[str, ...]:
    """Every secret value of the job, as it is written there."""
    return tuple(_secrets_of(job))


def unhidden_variables(job: Job) -> tuple[str, ...]:
    """Names of the job's secret variables whose values stay, because hiding them would destroy."""
    return tuple(
        variable.key
        for variable in job.variables
        if is_secret(variable) and variable.value.strip() and not usable([variable.value])
    )


def locked_headers(job: Job) -> frozenset[str]:
    """Lower-case names of the request headers that only some may see."""
    request = _request(job)
    if request is None or not request.headers:
        return _NONE
    return frozenset(header.key.lower() for header in request.headers if header.locked)


def usable(secrets: Iterable[str]) -> tuple[str, ...]:
    """What to look for: long enough, no word of the formats; longest first, each once."""
    pieces = (piece for secret in secrets for piece in _pieces(secret))
    return tuple(sorted(dict.fromkeys(filter(_is_usable, pieces)), key=len, reverse=True))


def _is_usable(secret: str) -> bool:
    return (
        len(secret) >= SHORTEST_CHARS
        and secret.lower() not in NEVER_HIDDEN
        and secret.strip("*") != ""
    )


def _pieces(secret: str) -> Iterator[str]:
    """The secret, without the white space that files end with, and its longer lines."""
    yield secret.strip()
    lines = secret.split("\n")
    if len(lines) > 1:
        long = (line.strip() for line in lines if len(line.strip()) >= LINE_CHARS)
        yield from (line for line in long if not line.startswith(_PEM_EDGE))


def _secrets_of(job: Job) -> Iterator[str]:
    for variable in job.variables:
        if is_secret(variable):
            yield variable.value
    for certificate in job.client_certificates:
        yield certificate.key
        if certificate.passphrase is not None:
            yield certificate.passphrase
    if job.proxy_url is not None:
        yield from _url_password(job.proxy_url)
    request = _request(job)
    if request is not None:
        yield from _request_secrets(request, job)


def _request(job: Job) -> HttpRequest | None:
    return job.spec.request if isinstance(job.spec, (UrlSpec, ApiSpec)) else None


def _request_secrets(request: HttpRequest, job: Job) -> Iterator[str]:
    for header in request.headers:
        yield from _header_secrets(header, job)
    for parameter in request.query_parameters:
        if parameter.locked:
            yield from _filled(parameter.value, job)
    if request.basic_auth is not None:
        yield from _filled(request.basic_auth.password, job)
    if "@" in request.url or "{{" in request.url:
        for url in (request.url, *_whole(request.url, job)):
            for password in _url_password(url):
                yield from _filled(password, job)


def _header_secrets(header: KeyValue, job: Job) -> Iterator[str]:
    name = header.key.lower()
    if name in ("cookie", "set-cookie"):
        for pair in header.value.split(";"):
            yield from _filled(pair.partition("=")[2].strip(), job)
    elif header.locked or name in SENSITIVE_HEADERS:
        yield from _filled(_SCHEME.sub("", header.value), job)


def _filled(template: str, job: Job) -> Iterator[str]:
    """The text as it is filled, and the parts that it is filled from."""
    if "{{" not in template:
        yield template
        return
    yield from _whole(template, job)
    yield from _TEMPLATE.split(template)
    names = set(_NAME.findall(template))
    yield from (variable.value for variable in job.variables if variable.key in names)


def _whole(template: str, job: Job) -> Iterator[str]:
    """The text with its variables; nothing when it also holds a time or a random value."""
    values = {variable.key: variable.value for variable in job.variables}
    if not set(_NAME.findall(template)) <= values.keys():
        return
    filling = Filling(variables=values, now=_NO_TIME, random=_NO_DICE)
    with suppress(VariableError):  # it cannot be filled, so nothing is sent
        yield fill(template, filling)
        yield fill(template, filling, encode=False)


def _url_password(url: str) -> Iterator[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)
