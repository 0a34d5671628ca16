"""API checks in the API."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from contract.checks import CheckType
from service.analytics.measures import BY_STATUS_CODE, HTTP, STATUS_CODE, Analytics
from service.checks.fields import (
    AnyComparison,
    AssertionWrite,
    BasicAuth,
    BodyKind,
    HttpThreshold,
    HttpWrite,
    Id,
    Joined,
    KeyValue,
    Listing,
    MaybeText,
    Method,
    PhaseScript,
    check_headers,
)
from service.checks.rules import phase_problem
from service.checks.schemas import CheckShown, CheckWrite, VariablesWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import field_error


class ApiAssertion(AssertionWrite):
    """What an API check can assert."""

    kind = CheckType.API
    source: Literal[
        "STATUS_CODE",
        "JSON_BODY",
        "HEADERS",
        "TEXT_BODY",
        "RESPONSE_TIME",
        "DAYS_TO_EXPIRY",
        "REMOTE_ADDRESS",
        "TLS_VERSION",
    ]
    comparison: AnyComparison


class ApiRequest(HttpWrite):
    """The request of an API check; `{{NAME}}` is replaced with a variable."""

    method: Method = "GET"
    """The HTTP method."""
    body: MaybeText = ""
    """The body of the request."""
    body_type: BodyKind = "NONE"
    """How the body is sent; the content type matches it."""
    headers: Listing[KeyValue] = Field(default_factory=list)
    """Headers of the request."""
    query_parameters: Listing[KeyValue] = Field(default_factory=list)
    """Parameters that are added to the URL."""
    basic_auth: BasicAuth | None = None
    """Null: none is sent."""
    assertions: Listing[ApiAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="after")
    def _one_line_headers(self) -> "ApiRequest":
        check_headers(self.headers or ())
        return self


class ApiCheckWrite(VariablesWrite, CheckWrite):
    """An API check."""

    kind = CheckType.API
    refused: ClassVar[Mapping[str, str]] = {}
    request: ApiRequest
    """What is requested and asserted."""
    degraded_response_time: HttpThreshold | None = 5000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: HttpThreshold | None = 20_000
    """Milliseconds after which a result fails. Null: never."""
    setup_snippet_id: Id = None
    """A snippet that runs before the request, instead of `localSetupScript`."""
    tear_down_snippet_id: Id = None
    """A snippet that runs on the response, instead of `localTearDownScript`."""
    local_setup_script: PhaseScript = None
    """Node.js code that runs before the request and can change it. Null: none."""
    local_tear_down_script: PhaseScript = None
    """Node.js code that runs on the response, before the assertions. Null: none."""

    @model_validator(mode="after")
    def _phases_fit(self) -> "ApiCheckWrite":
        setup, teardown = self.local_setup_script, self.local_tear_down_script
        ids = self.setup_snippet_id, self.tear_down_snippet_id
        if problem := phase_problem("localSetupScript", script=setup, snippet_id=ids[0]):
            raise field_error("setupSnippetId", problem)
        if problem := phase_problem("localTearDownScript", script=teardown, snippet_id=ids[1]):
            raise field_error("tearDownSnippetId", problem)
        if any(one is not None for one in (setup, teardown, *ids)):
            self.hold_runtime()
        return self

    @classmethod
    def spec_fields(cls, doc: Mapping[str, Any]) -> dict[str, Any]:
        """Phases have names of their own here."""
        return {
            **super().spec_fields(doc),
            "setupScript": doc.get("localSetupScript"),
            "teardownScript": doc.get("localTearDownScript"),
        }


class ApiRequestShown(ApiRequest):
    """The request of an API check, perhaps with what its group adds."""

    headers: Joined[KeyValue] = Field(default_factory=list)
    query_parameters: Joined[KeyValue] = Field(default_factory=list)
    assertions: Joined[ApiAssertion] = Field(default_factory=list)


class ApiCheckShown(CheckShown, ApiCheckWrite):
    """An API check."""

    request: ApiRequestShown
    check_type: Literal["API"]


API = TypeDefinition(
    write=ApiCheckWrite,
    purpose="Sends a request of any kind and judges all of its response.",
    shown=ApiCheckShown,
    example={
        "name": "Orders",
        "request": {
            "method": "POST",
            "url": "https://shop.example/api/orders",
            "headers": [{"key": "accept", "value": "application/json"}],
            "body": '{"sku": 7}',
            "bodyType": "JSON",
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "201"}],
        },
        **PLACES,
    },
    analytics=Analytics(
        path="api-checks", measures=HTTP, groups=BY_STATUS_CODE, dimension=STATUS_CODE
    ),
)
