"""Tells a Playwright Test file from a plain Playwright script without running it. Pure."""

import re
from typing import Final

_COMMENT_OR_TEXT: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`""", re.DOTALL
)
_TEST_CALL: Final = re.compile(r"(?<![.\w$])(?:test|it)(?:\.[a-zA-Z]+)*\s*\(")
_RUNNER: Final = re.compile(r"""['"](?:@playwright/test|playwright/test)['"]""")
_NAMED_TEST: Final = re.compile(
    r"\bimport\s+(?:\w+\s*,\s*)?\{[^}]*\btest\b[^}]*\}|\{[^}]*\btest\b[^}]*\}\s*=\s*require\b"
)
_FILE: Final = re.compile(r"\.(?:spec|test)\.[cm]?[jt]sx?$")


def is_playwright_test(script: str, path: str) -> bool:
    """Whether a script is to be run by Playwright Test; otherwise Node runs it by itself."""
    code = _COMMENT_OR_TEXT.sub(_kept, script)
    if _FILE.search(path) or _NAMED_TEST.search(code):
        return True
    return bool(_RUNNER.search(code)) and bool(_TEST_CALL.search(_without_texts(code)))


def _kept(found: re.Match[str]) -> str:
    """Texts stay, since modules are named by them; comments go."""
    return " " if found.group().startswith("/") else found.group()


def _without_texts(code: str) -> str:
    return _COMMENT_OR_TEXT.sub("''", code)
