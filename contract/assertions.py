"""Assertions of a check, and their results."""

from enum import StrEnum
from typing import Final

from contract.wire import Wire


class Source(StrEnum):
    """The value that an assertion tests; `contract.checks` lists the sources of each type."""

    STATUS_CODE = "STATUS_CODE"
    JSON_BODY = "JSON_BODY"
    HEADERS = "HEADERS"
    TEXT_BODY = "TEXT_BODY"
    RESPONSE_TIME = "RESPONSE_TIME"
    RESPONSE_DATA = "RESPONSE_DATA"
    RESPONSE_CODE = "RESPONSE_CODE"
    TEXT_ANSWER = "TEXT_ANSWER"
    JSON_ANSWER = "JSON_ANSWER"
    LATENCY = "LATENCY"
    JSON_RESPONSE = "JSON_RESPONSE"
    DAYS_TO_EXPIRY = "DAYS_TO_EXPIRY"
    REMOTE_ADDRESS = "REMOTE_ADDRESS"
    TLS_VERSION = "TLS_VERSION"


class Comparison(StrEnum):
    """How the actual value is compared with the target."""

    EQUALS = "EQUALS"
    NOT_EQUALS = "NOT_EQUALS"
    HAS_KEY = "HAS_KEY"
    NOT_HAS_KEY = "NOT_HAS_KEY"
    HAS_VALUE = "HAS_VALUE"
    NOT_HAS_VALUE = "NOT_HAS_VALUE"
    IS_EMPTY = "IS_EMPTY"
    NOT_EMPTY = "NOT_EMPTY"
    GREATER_THAN = "GREATER_THAN"
    LESS_THAN = "LESS_THAN"
    CONTAINS = "CONTAINS"
    NOT_CONTAINS = "NOT_CONTAINS"
    IS_NULL = "IS_NULL"
    NOT_NULL = "NOT_NULL"


CONNECTION_SOURCES: Final = frozenset(
    {Source.DAYS_TO_EXPIRY, Source.REMOTE_ADDRESS, Source.TLS_VERSION}
)
"""Facts of the connection, additions of ours: days until the certificate expires, the address that
was connected to, and the TLS version."""
JSON_SOURCES: Final = frozenset({Source.JSON_BODY, Source.JSON_ANSWER, Source.JSON_RESPONSE})
"""Sources whose `property` is a JSONPath."""
TEXT_SOURCES: Final = frozenset(
    {
        Source.TEXT_BODY,
        Source.RESPONSE_DATA,
        Source.TEXT_ANSWER,
        Source.RESPONSE_CODE,
        Source.REMOTE_ADDRESS,
        Source.TLS_VERSION,
    }
)
"""Sources whose `property` is a regular expression."""
NUMBER_SOURCES: Final = frozenset(
    {Source.STATUS_CODE, Source.RESPONSE_TIME, Source.LATENCY, Source.DAYS_TO_EXPIRY}
)
"""Sources whose value is always a number."""
OF_OBJECTS: Final = frozenset(
    {
        Comparison.HAS_KEY,
        Comparison.NOT_HAS_KEY,
        Comparison.HAS_VALUE,
        Comparison.NOT_HAS_VALUE,
    }
)
"""Comparisons of objects (`…_VALUE` also of arrays); they fail on strings and numbers."""
OF_NUMBERS: Final = frozenset({Comparison.GREATER_THAN, Comparison.LESS_THAN})
OF_EQUALITY: Final = frozenset({Comparison.EQUALS, Comparison.NOT_EQUALS})
WITHOUT_TARGET: Final = frozenset(
    {Comparison.IS_EMPTY, Comparison.NOT_EMPTY, Comparison.IS_NULL, Comparison.NOT_NULL}
)
"""Comparisons that have no use for a target."""


class Assertion(Wire, frozen=True, kw_only=True):
    """A condition that must hold for the check to pass."""

    source: Source
    comparison: Comparison
    property: str = ""
    """JSON sources: a JSONPath. HEADERS: the header's name. LATENCY: avg, min, max or stdDev.
    Text sources: a regular expression whose first capture group is compared."""
    target: str = ""
    """The expected value as a string; it is compared as a number if the actual value is one."""
    regex: str | None = None
    """HEADERS only: a regular expression whose first capture group is compared. None: the whole
    value is."""


class AssertionResult(Wire, frozen=True, kw_only=True):
    """An assertion and its result."""

    source: Source
    comparison: Comparison
    property: str = ""
    target: str = ""
    regex: str | None = None
    order: int
    """The assertion's position in the check's list, from 0."""
    actual: str | None = None
    """The value that was compared, cut to 10 KB. None: there was none."""
    error: str | None = None
    """Why the assertion fails. None: it holds."""
