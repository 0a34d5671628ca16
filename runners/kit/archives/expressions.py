"""Expressions that hint at what is looked for closely, compiled by RE2."""

from typing import Any, Final

import re2

_MEMORY_BYTES: Final = 32 << 20
"""With half of it the hints at 40 secrets run out of states, and take four times as long."""


def compiled(source: str) -> Any:
    """The expression, with one code point for each byte."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    expression = re2.compile(source.encode("latin-1"), options)
    re2.purge()  # it remembers 128 expressions, which could not be let go of
    return expression
