"""What counts as a secret of a run, and which secrets its scripts typed letter by letter."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from contract.checks import HttpSpec
from contract.job import Job, Variable
from contract.requests import HttpRequest, KeyValue
from contract.templates import Filling, VariableError, fill

_JSON: Final = "true false null none http https http:// https:// localhost"
_TRACE: Final = (
    "version type origin library libraryVersion options platform wallTime monotonicTime sdkLanguage"
    " testIdAttributeName contextId context-options title browserName channel playwrightVersion"
    " deviceScaleFactor viewport width height before after input event console stdout stderr"
    " screencast-frame frame-snapshot resource-snapshot error object action callId stepId parentId"
    " startTime endTime apiName class method params stack beforeSnapshot afterSnapshot"
    " inputSnapshot snapshot snapshotName pageId frameId frameUrl doctype html resourceOverrides"
    " timestamp isMainFrame sha1 point message messageType time result attachments annotations"
    " name contentType path file files base64 text args preview value location url lineNumber"
    " columnNumber line column function isError body data frames stacks frameSent frameReceived"
)
_HAR: Final = (
    "request response headers cookies queryString postData mimeType headersSize bodySize status"
    " statusText httpVersion content size encoding compression redirectURL cache timings connect"
    " send wait receive pageref startedDateTime serverIPAddress securityDetails creator browser"
    " comment entries pages _frameref _monotonicTime _serverPort _securityDetails _resourceType"
)
_REPORT: Final = (
    "config suites specs tests results errors projects projectName retry duration passed failed"
    " skipped expected unexpected flaky timedOut interrupted"
)
_PAGE: Final = (
    "HEAD BODY META LINK STYLE SCRIPT SPAN FORM INPUT BUTTON LABEL TABLE href"
    " __playwright_value_ __playwright_checked_ __playwright_selected_ __playwright_src__"
)

FORMAT_WORDS: Final = frozenset(
    word.lower() for words in (_JSON, _TRACE, _HAR, _REPORT, _PAGE) for word in words.split()
)
"""Lower-case keys of JSON, types of events, tags and attributes of snapshots."""


SHORTEST_CHARS: Final = 4
"""Shorter secrets are not hidden: hiding each `1` or `yes` would destroy the result."""
_WORDS: Final = "\0".join(sorted(FORMAT_WORDS))
"""Words that are never hidden, nor are parts of them, joined for one substring search."""
FEWEST_SIGNS: Final = 4
"""How many different signs a secret without letters has at least: JSON is full of quotes."""
CHUNKED_FROM_CHARS: Final = 8192
"""Longer values of one line are searched for in chunks, so that every form of theirs is found."""
CHUNK_CHARS: Final = 4096
MOST_SHORT_LINES: Final = 256
"""How many lines a secret has at most if its short lines are secret by themselves."""
LINE_CHARS: Final = 16
"""The shortest line that is secret by itself in a secret of more lines."""
VALUE_CHARS: Final = 8
"""The shortest value within JSON, YAML or `KEY=value` lines that is secret by itself."""

NUMERIC_PREFIX_CHARS: Final = 6
"""The shortest hidden prefix made of hexadecimal digits: shorter ones occur in times and in the
hashes that traces name resources by."""
CERTAIN_PREFIX_CHARS: Final = 6
"""Prefixes from this length on do not occur by chance in decoded data."""

_PREFIX: Final = "SERVICE_SECRET_"
_NONE: Final[frozenset[str]] = frozenset()
_FAR_CHARS: Final = 100
"""How far the shortest telling prefix is searched for."""
_PEM_EDGE: Final = "-----"
"""The start of the lines that all PEM keys share."""
_AROUND_LINE: Final = " \t\"',;"
"""What is around a value of a list in JSON or in code."""
_ASSIGNMENT: Final = re.compile(
    r"""(?m)^[ \t]*(?:-[ \t]+)?(?:export[ \t]+)?["']?[\w.\-]+["']?[ \t]*[:=][ \t]*(.*)$"""
)
"""A line of YAML or of an environment file, with its value."""
_COMMENT: Final = re.compile(r"[ \t]+#")
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/@]*/?")
"""A scheme and a host: hiding them would hide every address of that host."""
_TEMPLATE: Final = re.compile(r"\{{2,3}[^{}]*\}{2,3}")
_NAME: Final = re.compile(r"\{{2,3}\s*([^\s{}]+)")
_SCHEME: Final = re.compile(r"(?i)^(?:basic|bearer|digest|token|apikey|negotiate)\s+")

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
_NO_DICE: Final = SystemRandom()
"""Never used: a template that needs random values is not filled here."""


def is_secret(variable: Variable) -> bool:
    """Whether its value is hidden: it is marked secret, or its name says so."""
    return variable.secret or variable.locked or variable.key.startswith(_PREFIX)


def variable_secrets(variable: Variable) -> Iterator[str]:
    """The hidden parts of a secret variable: its value and, in a URL, the password."""
    yield variable.value
    if "@" in variable.value:
        yield from _url_password(variable.value)


def variables_with_secrets(job: Job) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The job's secret variables, by name, with the hidden parts of each."""
    for one in filter(is_secret, job.variables):
        yield one.key[:_MOST_CHARS], tuple(variable_secrets(one))


def secret_names(variables: Iterable[Variable]) -> tuple[str, ...]:
    """The names of the variables whose values are hidden."""
    return tuple(one.key for one in variables if is_secret(one))


def environment_secrets(environment: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """The secrets in a script's environment; `names`: further secret variables."""
    known = frozenset(names)
    named = (name for name in environment if name.startswith(_PREFIX) or name in known)
    return select_usable(environment[name] for name in named)


def job_secrets(job: Job) -> tuple[str, ...]:
    """Every secret value of the job, unchanged."""
    return tuple(_job_secrets(job))


def unhidden_variables(job: Job) -> tuple[tuple[str, str], ...]:
    """The job's secret variables that are not hidden, by name and reason."""
    return tuple(
        (variable.key, because)
        for variable in job.variables
        if is_secret(variable) and variable.value.strip()
        if (because := why_unhidden(variable.value)) is not None
    )


def locked_headers(job: Job) -> frozenset[str]:
    """Lower-case names of the locked request headers."""
    request = _request(job)
    if request is None or not request.headers:
        return _NONE
    return frozenset(header.key.lower() for header in request.headers if header.locked)


def select_usable(secrets: Iterable[str]) -> tuple[str, ...]:
    """The distinct values to search for, longest first: not too short, no word of the formats.

    They are the secrets, their lines, and the values in those that are JSON, YAML or `KEY=value`.
    """
    pieces = (piece for secret in secrets for piece in _pieces(secret))
    return tuple(sorted(dict.fromkeys(filter(is_usable, pieces)), key=len, reverse=True))


def why_unhidden(secret: str) -> str | None:
    """Why a secret is not hidden. None: it is."""
    if select_usable([secret]):
        return None
    if len(secret.strip()) < SHORTEST_CHARS:
        return f"it has fewer than {SHORTEST_CHARS} characters"
    if not any(map(str.isalnum, secret)):
        return f"it has no letters or digits, and fewer than {FEWEST_SIGNS} different characters"
    return "its value is too common: a word of the file formats, like true, https and callId"


def shortest_prefix(secret: str) -> str | None:
    """The shortest prefix that is hidden if the secret was typed letter by letter, if any.

    A page sees its field grow and may show each state of it.
    """
    if secret.startswith(_PEM_EDGE):
        return None
    sizes = range(SHORTEST_CHARS, min(len(secret), _FAR_CHARS))
    return next((secret[:size] for size in sizes if _identifies_secret(secret[:size])), None)


def hidden_prefixes(secret: str) -> Iterator[str]:
    """All prefixes that are hidden then, up to the length that people type."""
    shortest = shortest_prefix(secret)
    if shortest is not None:
        sizes = range(len(shortest), min(len(secret), _FAR_CHARS))
        yield from (secret[:size] for size in sizes)


def with_prefixes(secrets: Iterable[str], typed: Iterable[str]) -> tuple[str, ...]:
    """The secrets and the shortest prefixes of those that were typed."""
    return (*secrets, *filter(None, map(shortest_prefix, typed)))


def with_certain_prefixes(secrets: Iterable[str], typed: Iterable[str]) -> tuple[str, ...]:
    """The secrets and typed prefixes for the scanner, as long as none occurs by chance.

    Texts of fewer than six characters would also take the scanner four times as long.
    """
    found = (
        secret[: max(len(shortest_prefix(secret) or secret), CERTAIN_PREFIX_CHARS)]
        for secret in typed
    )
    return tuple(dict.fromkeys((*secrets, *found)))


def _identifies_secret(beginning: str) -> bool:
    """Whether a prefix identifies this secret, not the formats or many secrets."""
    letters = set(filter(str.isalpha, beginning))
    if len(beginning) < NUMERIC_PREFIX_CHARS and letters <= set("abcdef"):
        return False
    return is_usable(beginning.strip())


def is_usable(secret: str) -> bool:
    """Whether a text can be searched for: it is neither short nor too common."""
    return (
        len(secret) >= SHORTEST_CHARS
        and secret.lower() not in _WORDS
        and secret.strip("*") != ""
        and (any(map(str.isalnum, secret)) or len(set(secret)) >= FEWEST_SIGNS)
    )


def _pieces(secret: str) -> Iterator[str]:
    """The secret without white space around it, its lines and the values in it, and theirs."""
    secret = secret.strip()
    yield secret
    is_plain = "\n" not in secret and secret[:1] not in ("{", "[")
    if is_plain and len(secret) <= CHUNKED_FROM_CHARS:
        return
    for piece in dict.fromkeys(piece for part in PARTS for piece in part.read(secret)):
        if piece != secret:
            yield from _pieces(piece)


def _lines(secret: str) -> Iterator[str]:
    """The lines that identify a secret, without what lists have around their values."""
    lines = secret.split("\n")
    least = SHORTEST_CHARS if len(lines) <= MOST_SHORT_LINES else LINE_CHARS
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        bare = line.removeprefix("- ").strip(_AROUND_LINE)
        is_name = line.endswith((":", "=")) and bare[:-1].isidentifier()
        if not line.startswith(_PEM_EDGE) and not is_name and len(bare) >= least:
            yield bare


def _json_values(secret: str) -> Iterator[str]:
    if secret[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            yield from _select_values(_texts_in(json.loads(secret, parse_int=str, parse_float=str)))


def _assigned_values(secret: str) -> Iterator[str]:
    if "\n" in secret:
        yield from _select_values(_read_assignments(secret))


def _select_values(values: Iterable[str]) -> Iterator[str]:
    """The values that identify a secret, and the passwords in their URLs."""
    for value in map(str.strip, values):
        if len(value) >= VALUE_CHARS and _ORIGIN.fullmatch(value) is None:
            yield value
        if "@" in value:
            yield from _url_password(value)


def _read_assignments(secret: str) -> Iterator[str]:
    for line in _ASSIGNMENT.finditer(secret):
        value = line[1].strip().removesuffix(",")
        quote = value[:1]
        end = value.find(quote, 1) if quote in ("'", '"') else -1
        if quote == '"':
            with suppress(ValueError):
                yield str(json.JSONDecoder().raw_decode(value)[0])
        yield value[1:end] if end > 0 else _COMMENT.split(value, maxsplit=1)[0]


def _texts_in(value: Any) -> Iterator[str]:
    """The texts and numbers in a value of JSON."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts_in(item)
        case dict():
            for item in value.values():
                yield from _texts_in(item)
        case _:
            return


def _chunks(secret: str) -> Iterator[str]:
    # Chunks of a value that repeats itself fit everywhere in it, and are tried there for minutes.
    repeats = secret.find(secret[:CHUNK_CHARS], 1) > 0
    if len(secret) > CHUNKED_FROM_CHARS and "\n" not in secret and not repeats:
        last = len(secret) - CHUNK_CHARS
        yield from (secret[at : at + CHUNK_CHARS] for at in (*range(0, last, CHUNK_CHARS), last))


class SecretPart(NamedTuple):
    """A way in which parts of a secret are secret by themselves."""

    name: str
    read: Callable[[str], Iterator[str]]


PARTS: tuple[SecretPart, ...] = (
    SecretPart("lines", _lines),
    SecretPart("values in JSON", _json_values),
    SecretPart("values in YAML or KEY=value", _assigned_values),
    SecretPart("chunks of long values", _chunks),
)


def _job_secrets(job: Job) -> Iterator[str]:
    for variable in job.variables:
        if is_secret(variable):
            yield from variable_secrets(variable)
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
    return job.spec.request if isinstance(job.spec, HttpSpec) else None


def _request_secrets(request: HttpRequest, job: Job) -> Iterator[str]:
    for header in request.headers:
        yield from _header_secrets(header, job)
    for parameter in request.query_parameters:
        if parameter.locked:
            yield from _fill_parts(parameter.value, job)
    if request.basic_auth is not None:
        yield from _fill_parts(request.basic_auth.password, job)
    if "@" in request.url or "{{" in request.url:
        for url in (request.url, *_fill_template(request.url, job)):
            for password in _url_password(url):
                yield from _fill_parts(password, job)


def _header_secrets(header: KeyValue, job: Job) -> Iterator[str]:
    name = header.key.lower()
    if name in ("cookie", "set-cookie"):
        for pair in header.value.split(";"):
            yield from _fill_parts(pair.partition("=")[2].strip(), job)
    elif header.locked or name in SENSITIVE_HEADERS:
        yield from _fill_parts(_SCHEME.sub("", header.value), job)


def _fill_parts(template: str, job: Job) -> Iterator[str]:
    """The filled template, its literal parts and its variables' values."""
    if "{{" not in template:
        yield template
        return
    yield from _fill_template(template, job)
    yield from _TEMPLATE.split(template)
    names = set(_NAME.findall(template))
    yield from (variable.value for variable in job.variables if variable.key in names)


def _fill_template(template: str, job: Job) -> Iterator[str]:
    """The filled template; nothing if it also needs a time or a random value."""
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


_MOST_NAMES: Final = 5
_MOST_CHARS: Final = 60


def secret_sources(job: Job, *, found: tuple[str, ...], agent_has_secrets: bool) -> str:
    """Where the run's secrets come from; names, never values.

    `found`: secrets that the run reported. `agent_has_secrets`: whether it has secrets of its own.
    """
    sources = [*_check_sources(job)]
    if select_usable(found):
        sources.append("values that the script set in SERVICE_SECRET_*")
    if agent_has_secrets:
        sources.append("SERVICE_SECRET_* in the agent's environment")
    return ", ".join(sources)


def _check_sources(job: Job) -> Iterator[str]:
    secret = [one for one in job.variables if is_secret(one)]
    names = [one.key[:_MOST_CHARS] for one in secret if select_usable([one.value])]
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"the check's secret variables ({', '.join(names[:_MOST_NAMES])}{more})"
    known = {value for one in secret for value in variable_secrets(one)}
    if select_usable(value for value in job_secrets(job) if value not in known):
        yield "passwords and keys of the check's request, proxy or client certificates"


HIDDEN: Final = "*********"
"""Replaces a secret."""

SENSITIVE_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}
)
"""Lower-case names of headers whose values are never shown."""


CUT_SIGN: Final = "…"
"""Ends a truncated text; before it a secret's prefix is searched for."""


def cut(text: str, most_chars: int) -> str:
    """Truncate a text and mark that it was cut."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}{CUT_SIGN}"


_MOST_TYPED_CHARS: Final = 1 << 20
"""How many typed characters of a run are kept; a script that types more may have typed anything."""

_BACKSPACE: Final = "\b"
"""Deletes the letter before it, if both were typed into one field."""

TypedFilter = Callable[[Iterable[str]], tuple[str, ...]]
"""Selects the secrets that, or prefixes of which, were typed letter by letter."""


def no_typed_secrets(_: Iterable[str]) -> tuple[str, ...]:
    """No secret was typed."""
    return ()


class TypedTexts:
    """What a run's scripts typed, by process; pages see such a text grow and may show each state.

    It is compared with the secrets at the end: a secret may be reported after it was typed.
    """

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._chars = 0
        self._is_unknown = False
        """Whether any text may have been typed, so every secret counts as typed."""

    def note(self, process: int, text: str) -> None:
        """Append what a process typed."""
        self._chars += len(text) + 1
        if self._chars > _MOST_TYPED_CHARS:
            self.note_unknown()
        else:
            self._texts.setdefault(process, []).append(text)

    def note_unknown(self) -> None:
        """Record that something unknown was typed."""
        self._is_unknown = True
        self._texts.clear()

    def among(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Select the secrets that, or prefixes of which, were typed."""
        typed = tuple("".join(pieces) for pieces in self._texts.values())
        texts = (*(one.replace(_BACKSPACE, "") for one in typed), *map(_apply_backspaces, typed))
        return tuple(secret for secret in secrets if self._is_typed(secret, texts))

    def _is_typed(self, secret: str, texts: tuple[str, ...]) -> bool:
        beginning = shortest_prefix(secret)
        if beginning is None:
            return False
        return self._is_unknown or any(beginning in text for text in texts)


def _apply_backspaces(text: str) -> str:
    if _BACKSPACE not in text:
        return text
    letters: list[str] = []
    for letter in text:
        if letter != _BACKSPACE:
            letters.append(letter)
        elif letters:
            letters.pop()
    return "".join(letters)
