"""Whether the expressions of an assertion can be compiled, by the libraries that agents use.

The libraries are imported when the first expression comes: many a service never sees one.
"""

from typing import Final

from contract.assertions import Assertion
from contract.sense import Wrong, expression_of, path_of

_LENGTH: Final = ".length"
_MISSING: Final = "look-around and back-references are not available here"
_MISSING_MARKS: Final = ("invalid perl operator", "invalid escape sequence: \\")
_MOST_PATTERN_CHARS: Final = 10_000


def expression_problem(assertion: Assertion) -> Wrong | None:
    """The field whose expression cannot be compiled, and why. None: all can."""
    if (path := path_of(assertion)) is not None:
        problem = _path_problem(path)
        return None if problem is None else ("property", f"is no JSONPath: {problem}")
    if (expression := expression_of(assertion)) is not None:
        field, pattern = expression
        problem = _pattern_problem(pattern)
        return None if problem is None else (field, f"is no regular expression: {problem}")
    return None


def _path_problem(path: str) -> str | None:
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError  # noqa: PLC0415 - 40 ms, 4 MB

    environment = JSONPathEnvironment()
    try:
        environment.compile(path)
        if path.endswith(_LENGTH) and not path.endswith(f".{_LENGTH}"):
            environment.compile(path.removesuffix(_LENGTH))
    except JSONPathError as problem:
        return str(problem.args[0])
    except RecursionError:
        return "it is nested too deeply"
    return None


def _pattern_problem(pattern: str) -> str | None:
    import re2  # noqa: PLC0415 - as above

    if len(pattern) > _MOST_PATTERN_CHARS:
        return f"it has {len(pattern)} characters; use at most {_MOST_PATTERN_CHARS}"
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as problem:
        return _in_words(problem.args[0].decode("utf-8", "replace"))
    return None


def _in_words(reason: str) -> str:
    """People who know other engines are told what this one does not have."""
    return f"{reason} ({_MISSING})" if reason.startswith(_MISSING_MARKS) else reason
