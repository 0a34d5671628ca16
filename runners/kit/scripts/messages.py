"""What goes into a setup or teardown script, and the facts that come out. Pure."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

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
