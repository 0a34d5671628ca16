"""How sentences speak of a suite's tests. Pure."""

from contract.suite_evidence import SuiteTest


def named(test: SuiteTest) -> str:
    """A test as people look for it."""
    project = f"[{test.project}] " if test.project else ""
    return f"{project}{test.file}:{test.line} › {test.title}"  # noqa: RUF001 - Playwright's own sign


def sentence(text: str) -> str:
    """The text with a full stop."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
