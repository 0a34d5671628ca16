"""What a check may assert about what was seen, and how each assertion came out."""

from enum import StrEnum
from typing import Final

from contract.wire import Wire


class Source(StrEnum):
    """Where an assertion looks. Which type knows which source: `contract.checks`."""

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


class Comparison(StrEnum):
    """How the actual value is held against the target (field notes, section 1.5)."""

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


JSON_SOURCES: Final = frozenset({Source.JSON_BODY, Source.JSON_ANSWER, Source.JSON_RESPONSE})
"""Here `property` is a JSONPath."""
TEXT_SOURCES: Final = frozenset(
    {Source.TEXT_BODY, Source.RESPONSE_DATA, Source.TEXT_ANSWER, Source.RESPONSE_CODE}
)
"""Here `property` is a regular expression."""
NUMBER_SOURCES: Final = frozenset({Source.STATUS_CODE, Source.RESPONSE_TIME, Source.LATENCY})
"""Here there is always a number."""
OF_OBJECTS: Final = frozenset(
    {
        Comparison.HAS_KEY,
        Comparison.NOT_HAS_KEY,
        Comparison.HAS_VALUE,
        Comparison.NOT_HAS_VALUE,
    }
)
"""Only objects, and arrays for values, have these; of texts and numbers they never hold."""
OF_NUMBERS: Final = frozenset({Comparison.GREATER_THAN, Comparison.LESS_THAN})
OF_EQUALITY: Final = frozenset({Comparison.EQUALS, Comparison.NOT_EQUALS})


class Assertion(Wire, frozen=True, kw_only=True):
    """One sentence that must hold for the check to pass."""

    source: Source
    comparison: Comparison
    property: str = ""
    """JSON sources: a JSONPath. HEADERS: the header's name. LATENCY: avg, min, max or stdDev.
    Text sources: a regular expression whose first capture group is compared."""
    target: str = ""
    """Always a string; compared as a number where the actual value is one."""
    regex: str | None = None
    """HEADERS only: first capture group is compared. None: the whole value is."""


class AssertionResult(Wire, frozen=True, kw_only=True):
    """An assertion as it was evaluated."""

    source: Source
    comparison: Comparison
    property: str = ""
    target: str = ""
    regex: str | None = None
    order: int
    """Position in the check's list, from 0."""
    actual: str | None = None
    """What was compared, cut to 10 KB. None: there was nothing to compare."""
    error: str | None = None
    """Why it does not hold. None: it holds."""
