"""A result as text for a terminal."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contract.assertions import AssertionResult, Source
from contract.evidence import (
    BrowserEvidence,
    Certificate,
    Hop,
    HttpEvidence,
    MultiStepEvidence,
    PageMetrics,
    PageSeen,
    PlaywrightEvidence,
    RequestNode,
    ScriptEvidence,
    ScriptTest,
    SeenResponse,
    SuiteTest,
    TlsFacts,
)
from contract.result import (
    DnsEvidence,
    Evidence,
    HeartbeatEvidence,
    IcmpEvidence,
    Outcome,
    Result,
    Status,
    TcpEvidence,
    Timings,
)
from contract.runtimes import RUNTIMES
from picket.terminal import duration, one_line, printable
from runners.net.http.transfer import READ_LIMIT_BYTES

STYLES: Final = {
    Status.PASSED: "bold green",
    Status.DEGRADED: "bold yellow",
    Status.FAILED: "bold red",
    Status.TIMED_OUT: "bold red",
}
_MARKS: Final = {
    Status.PASSED: "✔",
    Status.DEGRADED: "▲",
    Status.FAILED: "✘",
    Status.TIMED_OUT: "✘",
}
_BAR_WIDTH: Final = 40


def report(result: Result, *, name: str) -> RenderableType:
    """Status and cause first, then phases, assertions and what was seen."""
    outcome = result.outcome
    return Group(
        _head(result, f"{name} ({result.check_type})"),
        *_cause(outcome),
        *_section("Phases", _phases(outcome.timings)),
        *_section("Assertions", _assertions(outcome.assertions)),
        *_seen(outcome.evidence),
        *_section("Headers", _failed_headers(outcome)),
        *_section("Log", _log(outcome)),
        *_section("Ran on", _list_facts(describe_runtime(outcome.evidence))),
    )


def _head(result: Result, title: str) -> Text:
    outcome = result.outcome
    style = STYLES[outcome.status]
    took = duration(outcome.response_time_ms)
    if outcome.response_time_ms is None and outcome.failure is not None:
        took = f"after {duration(result.took_s * 1000)}"  # no request was sent, no test begun
    return Text.assemble(
        (f"{_MARKS[outcome.status]} {outcome.status}", style),
        "  ",
        (one_line(title), "bold"),
        f"  {took}",
    )


def _cause(outcome: Outcome) -> Iterator[RenderableType]:
    if outcome.failure is not None:
        yield Padding(Text(printable(outcome.failure.message)), (0, 0, 0, 2))
    elif outcome.status is Status.DEGRADED:
        because = outcome.degraded_because or "It works, but exceeds a threshold for degradation."
        yield Padding(Text(printable(because)), (0, 0, 0, 2))


def _section(title: str, body: RenderableType | None) -> Iterator[RenderableType]:
    if body is not None:
        yield Text(f"\n  {title}", style="bold")
        yield Padding(body, (0, 0, 0, 4))


def _rows(*columns: str) -> Table:
    """A table without lines; each column is named by its style."""
    table = Table.grid(padding=(0, 2))
    for style in columns:
        table.add_column(style=style, overflow="fold")
    return table


def _phases(timings: Timings) -> Table | None:
    happened = _happened(timings)
    if not happened and timings.total is None and timings.installation is None:
        return None
    whole = timings.total or sum(happened.values())
    table = _rows("", "", "cyan")
    table.columns[1].justify = "right"
    before = 0.0
    for name, took in happened.items():
        table.add_row(name, duration(took), _bar(before, took, whole))
        before += took
    if timings.installation is not None:
        table.add_row("installation", duration(timings.installation))
    if timings.total is not None:
        name = "total" if timings.installation is None else "tests"
        table.add_row(name, duration(timings.total))
    return table


def _happened(timings: Timings) -> dict[str, float]:
    phases = {
        "wait": timings.wait,
        "dns": timings.dns,
        "tcp": timings.tcp,
        "tls": timings.tls,
        "first byte": timings.first_byte,
        "download": timings.download,
        "data": timings.data,
    }
    return {name: took for name, took in phases.items() if took is not None}


def _bar(before: float, took: float, whole: float) -> str:
    """Each phase begins where the one before it ended."""
    if whole <= 0:
        return ""
    start = round(_BAR_WIDTH * min(before / whole, 1))
    length = max(1, round(_BAR_WIDTH * min(took / whole, 1)))
    return " " * min(start, _BAR_WIDTH - 1) + "━" * min(length, max(1, _BAR_WIDTH - start))


def _assertions(assertions: tuple[AssertionResult, ...]) -> Table | None:
    if not assertions:
        return None
    table = _rows("", "", "dim")
    for each in assertions:
        holds = each.error is None
        mark = Text("✔", style="green") if holds else Text("✘", style="red")
        words = [each.source, each.property, each.regex or "", each.comparison, each.target]
        sentence = one_line(" ".join(word for word in words if word))
        actual = "" if each.actual is None else f"was {one_line(each.actual, limit=80)}"
        table.add_row(
            mark, Text(sentence), Text(actual if each.error is None else _shorten_error(each.error))
        )
    return table


def _shorten_error(error: str) -> str:
    """What the sentence says beyond its row; the whole of it stands at the top, if it is first."""
    for before in (", but ", " cannot be evaluated: "):
        _, found, rest = error.partition(before)
        if found:
            return printable(rest.rstrip("."))
    return printable(error)


def _failed_headers(outcome: Outcome) -> Table | None:
    """The response's headers, for whoever looks for one. None: no assertion misses any."""
    evidence = outcome.evidence
    if not isinstance(evidence, HttpEvidence) or evidence.response is None:
        return None
    if not any(one.source is Source.HEADERS and one.error for one in outcome.assertions):
        return None
    return _list_facts(dict(evidence.response.headers))


def _seen(evidence: Evidence | None) -> Iterator[RenderableType]:
    match evidence:
        case None:
            return
        case HttpEvidence():
            yield from _section("Way", _hops(evidence.hops))
            yield from _section("TLS", _tls(evidence.tls))
            yield from _section("Answer", _answer(evidence))
        case TcpEvidence():
            yield from _section("TLS", _tls(evidence.tls))
            yield from _section("Answer", _facts(_tcp_facts(evidence)))
        case DnsEvidence():
            yield from _section("Answer", _facts(_dns_facts(evidence)))
            yield Padding(Text(printable(evidence.text.rstrip()), style="dim"), (0, 0, 0, 4))
        case IcmpEvidence():
            yield from _section("Echoes", _list_facts(_icmp_facts(evidence)))
        case HeartbeatEvidence():
            yield from _section("Pings", _facts(_heartbeat_facts(evidence)))
        case BrowserEvidence():
            yield from _section("Tests", script_tests(evidence))
            yield from _section("Errors", script_errors(evidence))
            yield from _section("Pages", pages(evidence.pages))
            yield from _section("Requests", requests(evidence.requests))
            yield from _section("TLS", _tls(evidence.tls))
        case MultiStepEvidence():
            yield from _section("Tests", script_tests(evidence))
            yield from _section("Errors", script_errors(evidence))
            yield from _section("Requests", requests(evidence.requests))
        case PlaywrightEvidence():
            yield from _section("Tests", suite_tests(evidence))


def _list_facts(facts: dict[str, str | None]) -> Table | None:
    """None: there are none."""
    return _facts(facts) if any(value is not None for value in facts.values()) else None


def _facts(facts: dict[str, str | None]) -> Table:
    table = _rows("", "")
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, Text(printable(value, limit=400)))
    return table


def _hops(hops: tuple[Hop, ...]) -> Table | None:
    """The redirects, and where they led. None: there was none."""
    if all(hop.location is None for hop in hops):
        return None
    table = _rows("dim", "", "", "dim")
    for number, hop in enumerate(hops, 1):
        where = hop.url if hop.location is None else f"{hop.url} → {hop.location}"
        took = duration(hop.total_ms)
        table.add_row(f"{number}.", str(hop.status_code), Text(one_line(where)), took)
    return table


def _tls(tls: TlsFacts | None) -> Table | None:
    if tls is None:
        return None
    leaf = tls.chain[0] if tls.chain else None
    trust = "verified" if tls.verified else tls.verify_error or "not verified"
    return _facts(
        {
            "version": " ".join(part for part in (tls.version, tls.cipher) if part) or None,
            "trust": trust,
            "expires": _expiry(tls, leaf),
            "subject": leaf.subject if leaf else None,
            "names": ", ".join(leaf.names) if leaf else None,
            "issuer": leaf.issuer if leaf else None,
        }
    )


def _expiry(tls: TlsFacts, leaf: Certificate | None) -> str | None:
    days = tls.days_to_expiry
    if days is None:
        return None
    when = f"in {days:.1f} days" if days >= 0 else f"{-days:.1f} days ago"
    other = leaf is not None and tls.expires_first not in {None, leaf.subject}
    return f"{when}, by {tls.expires_first}" if other else when


def _answer(evidence: HttpEvidence) -> Table | None:
    response = evidence.response
    if response is None:
        return None
    return _facts(
        {
            "status": f"{response.status_code} {response.status_text}".rstrip(),
            "protocol": response.http_version and f"HTTP/{response.http_version}",
            "from": evidence.remote_address,
            "type": response.headers.get("content-type"),
            "body": _body_size(response),
            "": response.note or one_line(response.body, limit=160) or None,
        }
    )


def _body_size(response: SeenResponse) -> str:
    """How long the body was, and how much of it was read and stored."""
    read_bytes = response.body_bytes
    announced = response.headers.get("content-length", "")
    is_whole = not response.truncated or announced == str(read_bytes)
    if read_bytes >= READ_LIMIT_BYTES and not is_whole:
        length = f" (Content-Length {announced})" if announced else ""
        return f"more than {read_bytes} bytes{length}, the rest was not read"
    if response.truncated:
        return f"{read_bytes} bytes, the first {len(response.body)} characters are stored"
    return f"{read_bytes} bytes"


_READING_ENDS: Final = {
    "decided": "the assertions were decided",
    "closed": "the peer closed the connection",
    "patience": "the time to answer was over",
    "limit": "64 KiB were read",
}


def _tcp_facts(evidence: TcpEvidence) -> dict[str, str | None]:
    return {
        "peer": evidence.remote_address and f"{evidence.remote_address}:{evidence.port}",
        "said": "nothing" if evidence.response == "" else evidence.response,
        "read until": _READING_ENDS.get(evidence.reading_ended or ""),
    }


def _dns_facts(evidence: DnsEvidence) -> dict[str, str | None]:
    return {
        "question": f"{evidence.query} {evidence.record_type}",
        "server": f"{evidence.name_server} over {evidence.protocol}{_times(evidence.queries)}",
        "code": evidence.response_code,
    }


def _times(queries: int | None) -> str:
    return f", asked {queries} times" if queries is not None and queries > 1 else ""


def _icmp_facts(evidence: IcmpEvidence) -> dict[str, str | None]:
    if not evidence.packets_sent:
        return {"address": evidence.resolved_ip}
    errors = sorted({echo.error for echo in evidence.echoes if echo.error})
    latency = evidence.latency
    names = [name for name in ("min", "avg", "max", "stdDev") if name in latency]
    return {
        "address": evidence.resolved_ip,
        "replies": f"{evidence.packets_received} of {evidence.packets_sent}",
        "loss": f"{evidence.packet_loss:g} %",
        "latency": ", ".join(f"{name} {duration(latency[name])}" for name in names) or None,
        "errors": ", ".join(errors) or None,
    }


def _heartbeat_facts(evidence: HeartbeatEvidence) -> dict[str, str | None]:
    silent = evidence.silent_for_s
    return {
        "last ping": "none yet" if silent is None else f"{silent:g} s ago",
        "due after": f"{evidence.period_s:g} s, and {evidence.grace_s:g} s of grace",
    }


def _log(outcome: Outcome) -> Table | None:
    if not outcome.log:
        return None
    table = _rows("dim", "", "")
    for line in outcome.log:
        table.add_row(duration(line.after_ms), line.level, Text(printable(line.message)))
    return table


def pages(seen: tuple[PageSeen, ...]) -> Table | None:
    """Each page with its measures and errors. None: there was no page."""
    if not seen:
        return None
    table = _script_rows()
    for page in seen:
        table.add_row(f"{page.index + 1}.", Text(one_line(page.url, limit=80)), _measures(page))
    return table


def requests(seen: tuple[RequestNode, ...]) -> Table | None:
    """Each request with its answer. None: there was no request."""
    if not seen:
        return None
    table = _script_rows()
    for number, node in enumerate(seen, 1):
        answer = one_line(node.error or "", limit=80) if node.status_code is None else ""
        status = "" if node.status_code is None else str(node.status_code)
        what = Text(one_line(f"{node.method} {node.url}", limit=80))
        table.add_row(f"{number}.", what, f"{status}{answer} {duration(node.timings.total)}")
    return table


def _script_rows() -> Table:
    table = Table.grid(padding=(0, 2))
    for style in ("dim", "", ""):
        table.add_column(style=style)
    return table


def _measures(page: PageSeen) -> str:
    metrics: PageMetrics = page.metrics
    times = {"TTFB": metrics.ttfb_ms, "FCP": metrics.fcp_ms, "LCP": metrics.lcp_ms}
    told = [f"{name} {duration(value)}" for name, value in times.items() if value is not None]
    if metrics.cls is not None:
        told.append(f"CLS {metrics.cls:.3g}")
    if metrics.tbt_ms is not None:
        told.append(f"TBT {duration(metrics.tbt_ms)}")
    errors = page.console_errors + page.network_errors + page.document_errors
    return ", ".join([*told, *([f"{errors} error{'s' * (errors > 1)}"] if errors else [])])


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


def script_tests(seen: ScriptEvidence) -> Table | None:
    """The tests of a script, those that failed first. None: it has one, or none."""
    if len(seen.tests) < 2:
        return None
    table = _rows("", "", "dim")
    for test in sorted(seen.tests, key=_rank)[:MOST_ROWS]:
        table.add_row(_verdict(test), Text(one_line(test.title, limit=100)), duration(test.took_ms))
    if len(seen.tests) > MOST_ROWS:
        table.add_row("", f"and {len(seen.tests) - MOST_ROWS} more")
    return table


def script_errors(seen: ScriptEvidence) -> Table | None:
    """Each error with its test, its place and the lines around it. None: there was none."""
    if not seen.errors:
        return None
    table = _rows("dim", "")
    for number, error in enumerate(seen.errors, 1):
        about = (error.test, "soft" if error.is_soft else None, error.where)
        head = " · ".join(one_line(part, limit=100) for part in about if part)
        lines = (head, one_line(error.message, limit=200), printable(error.frame or ""))
        table.add_row(f"{number}.", Text("\n".join(filter(None, lines))))
    return table


def _rank(test: SuiteTest | ScriptTest) -> int:
    return _ORDER["unexpected" if test.status == "interrupted" else test.outcome]


def _verdict(test: SuiteTest | ScriptTest) -> str:
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


_MOST_TRACES: Final = 5
_NAME: Final = "picket"


def describe_runtime(evidence: Evidence | None) -> dict[str, str | None]:
    """Runtime, Playwright and Node by name. Empty: nothing scripted was seen."""
    if isinstance(evidence, PlaywrightEvidence):
        return {"Playwright": evidence.playwright_version, "Node": evidence.node_version}
    if not isinstance(evidence, ScriptEvidence):
        return {}
    facts = RUNTIMES.get(evidence.runtime_id)
    return {
        "runtime": evidence.runtime_id,
        "Playwright": _playwright(evidence),
        "Node": facts.node if facts else None,
    }


def trace_commands(outcome: Outcome, folder: Path) -> tuple[str, ...]:
    """What opens the first traces of the run, which lie in this folder."""
    traces = [one.name for one in outcome.artifacts if one.kind == "trace"]
    return tuple(trace_command(folder / name) for name in traces[:_MOST_TRACES])


def _playwright(evidence: Evidence | None) -> str | None:
    """The version. None: nobody knows it."""
    if isinstance(evidence, PlaywrightEvidence):
        return evidence.playwright_version
    if not isinstance(evidence, ScriptEvidence):
        return None
    facts = RUNTIMES.get(evidence.runtime_id)
    return evidence.playwright or (facts.playwright if facts else None)


def trace_command(path: Path) -> str:
    """What opens a trace, as it can be pasted where it is printed."""
    return f"{_program()} trace {shlex.quote(str(path))}"


def _program() -> str:
    """This program, as the reader called it."""
    called = Path(sys.argv[0])
    if called.name != _NAME:
        return f"{shlex.quote(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    is_on_path = found is not None and called.exists() and Path(found).samefile(called)
    return _NAME if is_on_path else shlex.quote(sys.argv[0])
