"""Facts of a run as its result holds them: in order, and cut to size."""

import json
from typing import Any

from contract.result import LogLine
from runners.scripting.playwright.evidence import build_browser_evidence, build_log
from runners.scripting.playwright.reporter import ReporterEvents

START_MS = 1_000_000.0


def book(*facts: dict[str, Any]) -> ReporterEvents:
    told = ReporterEvents()
    for fact in facts:
        told.take(json.dumps(fact).encode())
    return told


def a_step(number: int, *, where: str | None) -> dict[str, Any]:
    at = START_MS + number
    return {
        "fact": "stepBegan",
        "id": number,
        "title": f"step {number}",
        "category": "pw:api",
        "where": where,
        "at": at,
    }


def an_end(number: int, error: str | None = None) -> dict[str, Any]:
    return {"fact": "stepEnded", "id": number, "tookMs": 1, "error": error}


def test_steps_of_the_users_own_are_told_and_others_when_they_go_wrong() -> None:
    told = book(
        a_step(0, where="script.js:1:1"),
        an_end(0),
        a_step(1, where=None),
        an_end(1),
        a_step(2, where=None),
        an_end(2, "no context"),
        a_step(3, where=None),
    )
    seen = build_browser_evidence(told, runtime_id="2026.04", start_ms=START_MS).steps
    assert [(step.title, step.started_after_ms, step.took_ms) for step in seen] == [
        ("step 0", 0, 1),
        ("step 2", 2, 1),
        ("step 3", 3, None),
    ]


def test_no_more_steps_are_told_than_a_result_holds() -> None:
    told = book(*(a_step(number, where="script.js:1:1") for number in range(310)))
    seen = build_browser_evidence(told, runtime_id="2026.04", start_ms=START_MS)
    assert (len(seen.steps), seen.steps_left_off) == (300, 10)


def test_pages_are_told_in_the_order_of_the_run() -> None:
    told = book(*({"fact": "page", "index": index, "url": f"/{index}"} for index in (2, 0, 1)))
    seen = build_browser_evidence(told, runtime_id="2026.04", start_ms=START_MS).pages
    assert [page.url for page in seen] == ["/0", "/1", "/2"]


def test_the_log_is_what_was_printed_and_what_pages_said_by_time() -> None:
    printed = [LogLine(after_ms=5, level="INFO", message="\x1b[1mfive\x1b[0m")]
    said = {"fact": "log", "level": "WARN", "message": "three", "at": START_MS + 3}
    ours = [LogLine(after_ms=at, level="WARN", message=f"note {at}") for at in (0, 4)]
    lines = build_log(printed, book(said), ours, start_ms=START_MS)
    assert [line.message for line in lines] == ["note 0", "three", "note 4", "five"]


def test_a_printed_line_has_the_level_that_the_script_gave_it() -> None:
    told = book({"fact": "level", "level": "WARN", "message": "slow\nvery"})
    printed = [
        LogLine(after_ms=number, level="ERROR", message=message)
        for number, message in enumerate(["slow", "very", "slow"])
    ]
    lines = build_log(printed, told, [], start_ms=START_MS)
    assert [line.level for line in lines] == ["WARN", "WARN", "ERROR"]


def test_a_log_that_is_too_long_is_cut_with_a_notice() -> None:
    printed = [LogLine(after_ms=n, level="INFO", message="x" * 10_000) for n in range(150)]
    *_, last = build_log(printed, book(), [], start_ms=START_MS)
    assert last.message.startswith("The log is cut here: 5")
