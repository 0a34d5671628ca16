"""What a scripted check saw, as tables for a person at a terminal. Pure."""

from rich.table import Table
from rich.text import Text

from contract.script_evidence import PageMetrics, PageSeen, RequestNode
from picket.printable import duration, one_line


def pages(seen: tuple[PageSeen, ...]) -> Table | None:
    """Each page with its measures and errors. None: there was no page."""
    if not seen:
        return None
    table = _rows()
    for page in seen:
        table.add_row(f"{page.index + 1}.", Text(one_line(page.url, limit=80)), _measures(page))
    return table


def requests(seen: tuple[RequestNode, ...]) -> Table | None:
    """Each request with its answer. None: there was no request."""
    if not seen:
        return None
    table = _rows()
    for number, node in enumerate(seen, 1):
        answer = one_line(node.error or "", limit=80) if node.status_code is None else ""
        status = "" if node.status_code is None else str(node.status_code)
        what = Text(one_line(f"{node.method} {node.url}", limit=80))
        table.add_row(f"{number}.", what, f"{status}{answer} {duration(node.timings.total)}")
    return table


def _rows() -> Table:
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
