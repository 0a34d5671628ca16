"""Log lines are JSON with a time, a level and an event, and hold no secret."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from agent.telemetry.logs import LogFormat, LogLevel, configure, default_format

SECRET = "s3cr et/value"


class Tap:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException | None]] = []

    def note(self, event: str, error: BaseException | None) -> None:
        self.seen.append((event, error))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    chosen = structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**chosen)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def tap() -> Tap:
    return Tap()


@pytest.fixture
def log(stream: io.StringIO, tap: Tap) -> Any:
    configure(LogLevel.INFO, LogFormat.JSON, secrets=[SECRET], stream=stream, on_error=tap.note)
    return structlog.get_logger("test")


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_time_level_event_and_fields(
    log: Any, stream: io.StringIO
) -> None:
    log.info("job.finished", status="PASSED", took_ms=1.5)
    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "info",
        "event": "job.finished",
        "status": "PASSED",
        "took_ms": 1.5,
    }


def test_bound_fields_are_on_each_line(log: Any, stream: io.StringIO) -> None:
    log.bind(job_id="j1").warning("job.late")
    (line,) = lines(stream)
    assert (line["job_id"], line["level"]) == ("j1", "warn")


@pytest.mark.parametrize(
    ("level", "written"),
    [
        (LogLevel.DEBUG, ["debug", "info", "warn", "error"]),
        (LogLevel.INFO, ["info", "warn", "error"]),
        (LogLevel.LOG, ["info", "warn", "error"]),
        (LogLevel.WARN, ["warn", "error"]),
        (LogLevel.ERROR, ["error"]),
    ],
)
@pytest.mark.parametrize("get_logger", [structlog.get_logger, logging.getLogger])
def test_less_important_lines_are_left_out(
    stream: io.StringIO, level: LogLevel, written: list[str], get_logger: Any
) -> None:
    configure(level, LogFormat.JSON, stream=stream)
    log = get_logger("some.module")
    for method in ("debug", "info", "warning", "error"):
        getattr(log, method)("x")
    assert [line["level"] for line in lines(stream)] == written


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_no_secret_is_in_a_line(stream: io.StringIO, log_format: LogFormat) -> None:
    configure(LogLevel.INFO, log_format, secrets=[SECRET], stream=stream)
    log = structlog.get_logger("test")
    careless = f"said {SECRET}"
    log.info(careless, a=SECRET, b={"c": [SECRET]}, key="pl_abcdef123456")
    log.info("sent", headers={"Authorization": "Bearer abcdefgh"}, url="x?t=s3cr%20et%2Fvalue")
    logging.getLogger("aiohttp").warning("said %s", SECRET)
    try:
        int(SECRET)
    except ValueError:
        log.exception("job.crashed")
        logging.getLogger("aiohttp").exception("crashed")
    text = stream.getvalue()
    assert "job.crashed" in text
    assert "ValueError" in text
    leaked = [one for one in (SECRET, "s3cr", "pl_abc", "abcdefgh") if one in text]
    assert leaked == []


def test_the_standard_library_writes_the_same_lines(log: Any, stream: io.StringIO) -> None:
    logging.getLogger("aiohttp.client").warning("closed after %s s", 3)
    (line,) = lines(stream)
    assert (line["level"], line["event"]) == ("warn", "closed after 3 s")


def test_what_json_cannot_say_is_written_as_text(log: Any, stream: io.StringIO) -> None:
    log.info("x", level_=LogLevel.WARN, other=frozenset({1}), error=ValueError("no"))
    (line,) = lines(stream)
    assert (line["level_"], line["other"], line["error"]) == ("WARN", [1], "no")


def test_errors_reach_the_tap_with_their_exception(log: Any, tap: Tap) -> None:
    problem = ValueError("no")
    log.warning("x.warned")
    log.error("x.failed", exc_info=problem)
    try:
        raise problem
    except ValueError:
        log.exception("x.crashed")
    log.error("x.plain")
    assert tap.seen == [("x.failed", problem), ("x.crashed", problem), ("x.plain", None)]


def test_the_tap_gets_the_template_of_a_standard_line_not_its_values(log: Any, tap: Tap) -> None:
    logging.getLogger("aiohttp.server").error("Error handling request from %s", "10.1.2.3")
    assert tap.seen == [("Error handling request from %s", None)]


def test_a_lost_stream_does_not_stop_the_program(log: Any, stream: io.StringIO) -> None:
    stream.close()
    log.info("x")
    logging.getLogger("y").warning("x")


def test_a_terminal_gets_the_console_format_and_a_pipe_gets_json() -> None:
    assert default_format(Terminal()) is LogFormat.CONSOLE
    assert default_format(io.StringIO()) is LogFormat.JSON


def test_console_lines_show_event_and_fields() -> None:
    terminal = Terminal()
    configure(LogLevel.INFO, LogFormat.CONSOLE, stream=terminal)
    structlog.get_logger("t").info("job.finished", took_ms=3)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert "job.finished" in plain
    assert "took_ms=3" in plain
