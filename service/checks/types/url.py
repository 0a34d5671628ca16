"""URL monitors in the API."""

from typing import Any, Literal

from pydantic import Field, model_validator

from contract.checks import CheckType
from service.analytics.measures import BY_STATUS_CODE, HTTP, STATUS_CODE, Analytics
from service.checks.fields import (
    AssertionWrite,
    HttpThreshold,
    HttpWrite,
    Listing,
    NumberComparison,
)
from service.checks.rules import NO_PHASES, plain_request_problem
from service.checks.schemas import MinuteCheckWrite, VariablesWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import field_error


class UrlAssertion(AssertionWrite):
    """What a URL monitor can assert: its status code, and facts about its connection."""

    kind = CheckType.URL
    source: Literal["STATUS_CODE", "DAYS_TO_EXPIRY", "REMOTE_ADDRESS", "TLS_VERSION"]
    comparison: NumberComparison


class UrlRequest(HttpWrite):
    """The request of a URL monitor: always GET."""

    method: Literal["GET"] = "GET"
    """Always GET."""
    assertions: Listing[UrlAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_dropped_in_silence(cls, request: Any) -> Any:
        if isinstance(request, dict) and (found := plain_request_problem(request)):
            raise field_error(*found)
        return request


class UrlCheckWrite(VariablesWrite, MinuteCheckWrite):
    """A URL monitor."""

    kind = CheckType.URL
    refused = NO_PHASES
    request: UrlRequest
    """What is requested and asserted."""
    degraded_response_time: HttpThreshold | None = 3000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: HttpThreshold | None = 5000
    """Milliseconds after which a result fails. Null: never."""


URL = TypeDefinition(
    write=UrlCheckWrite,
    purpose="Requests an address and judges its status and its time.",
    example={"name": "Front page", "request": {"url": "https://shop.example/"}, **PLACES},
    analytics=Analytics(
        path="url-monitors", measures=HTTP, groups=BY_STATUS_CODE, dimension=STATUS_CODE
    ),
)
