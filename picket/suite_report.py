"""What a Playwright check suite saw, as a table for a person at a terminal. Pure."""

from typing import Final

from rich.table import Table
from rich.text import Text

from contract.suite_evidence import PlaywrightEvidence, SuiteTest
from picket.printable import duration, one_line

MOST_ROWS: Final = 50
_ORDER: Final = {"unexpected": 0, "flaky": 1, "expected": 2, "skipped": 3}


def suite_tests(seen: PlaywrightEvidence) -> Table | None:
    """The tests, those that failed first. None: there was none."""
    if not seen.tests:
        return None
    table = Table.grid(padding=(0, 2))
    for style in ("", "", "dim"):
        table.add_column(style=style)
    for test in sorted(seen.tests, key=_rank)[:MOST_ROWS]:
        table.add_row(_verdict(test), Text(one_line(_name(test), limit=100)), _took(test))
    if len(seen.tests) > MOST_ROWS:
        table.add_row("", f"and {len(seen.tests) - MOST_ROWS} more")
    return table


def _rank(test: SuiteTest) -> int:
    return _ORDER["unexpected" if test.status == "interrupted" else test.outcome]


def _verdict(test: SuiteTest) -> str:
    if test.status == "interrupted":
        return test.status
    words = {"expected": "passed", "unexpected": test.status, "flaky": "flaky"}
    return words.get(test.outcome, "skipped")


def _name(test: SuiteTest) -> str:
    project = f"[{test.project}] " if test.project else ""
    return f"{project}{test.file}:{test.line} {test.title}"


def _took(test: SuiteTest) -> str:
    retries = f", {test.retries} retries" if test.retries else ""
    return f"{duration(test.took_ms)}{retries}"
