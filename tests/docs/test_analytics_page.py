"""The table of docs/analytics.md is that of the metrics."""

import sys
from pathlib import Path

from service.analytics.distribution import Aggregation
from service.analytics.windows import INTERVALS, QuickRange
from service.checks.types.registry import DEFINITIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs/analytics.md").read_text(encoding="utf-8")


def table() -> str:
    """A row for each measure of each type."""
    rows = [
        "| Path, below `/v1/analytics` | Metric | Unit | Without a suffix | `groupBy` |",
        "|---|---|---|---|---|",
    ]
    for definition in DEFINITIONS:
        analytics = definition.analytics
        if analytics is None:
            continue
        groups = ", ".join(f"`{one.value}`" for one in analytics.groups)
        public = [one for one in analytics.all_measures if one.is_public]
        for number, measure in enumerate(public):
            usual = (
                measure.usual.value if measure.has_suffixes else f"{measure.usual.value}; no suffix"
            )
            first = (f"`/{analytics.path}/{{id}}`", groups) if number == 0 else ("", "")
            cells = (
                first[0],
                f"`{measure.name}`: {measure.label}",
                measure.unit.value,
                usual,
                first[1],
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_page_has_the_table_of_metrics() -> None:
    assert table() in PAGE


def test_the_page_names_suffixes_ranges_and_intervals() -> None:
    for name in (*(f"_{one.value}" for one in Aggregation), *QuickRange):
        assert f"`{name}`" in PAGE
    minutes = ", ".join(f"{one:,}" for one in INTERVALS)
    assert minutes in PAGE


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
