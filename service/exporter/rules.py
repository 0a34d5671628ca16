"""The page for Prometheus as text.

The client library takes 15 µs for a sample, a quarter of a second for 1,000 checks: it escapes the
labels of a check anew for each of its series. Here that is done once per check.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from service.exporter.model import (
    CheckIdentity,
    CheckSeries,
    CheckStatus,
    LocationSeries,
    ResultStatus,
)

_FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    "picket_check_status": ("gauge", "1 for the status that the check has, 0 for the others."),
    "picket_check_result_total": ("counter", "Final results since the service started."),
    "picket_check_response_time_seconds": ("gauge", "Response time of the newest result."),
    "picket_check_timing_seconds": ("gauge", "Phases of the newest result."),
    "picket_check_latency_seconds": ("gauge", "Round-trip times of the newest result."),
    "picket_check_packet_loss_ratio": ("gauge", "Lost packets of the newest result, 0 to 1."),
    "picket_browser_web_vitals_seconds": ("gauge", "Web vitals of the newest result's page."),
    "picket_browser_layout_shift": ("gauge", "Cumulative layout shift of that page."),
    "picket_certificate_expiry_seconds": ("gauge", "Until the first certificate expires."),
    "picket_heartbeat_last_ping_timestamp_seconds": ("gauge", "When the last ping came."),
    "picket_heartbeat_expected_interval_seconds": ("gauge", "A ping is due this often."),
    "picket_private_location_queue_size": ("gauge", "Runs that could be claimed now."),
    "picket_private_location_oldest_wait_seconds": ("gauge", "How long the oldest waits."),
    "picket_private_location_agents": ("gauge", "Agents that are connected."),
}
"""Type and help of each family, in the order of the page."""
_OWN_LABELS: Final = frozenset(
    {"name", "check_id", "check_type", "group", "muted", "activated", "tags"}
    | {"status", "phase", "stat", "vital"}
)
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_BAD_BEGIN: Final = re.compile(r"[0-9]|__")
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Lines = dict[str, list[str]]


def render_page(checks: Iterable[CheckSeries], locations: Iterable[LocationSeries]) -> bytes:
    """The Prometheus text format 0.0.4."""
    lines: Lines = {name: [] for name in _FAMILIES}
    for check in checks:
        _add_check(lines, check)
    for location in locations:
        _add_location(lines, location)
    return "".join(_render_families(lines)).encode(errors="replace")


def _render_families(lines: Lines) -> Iterator[str]:
    for name, (kind, description) in _FAMILIES.items():
        yield f"# HELP {name} {description}\n# TYPE {name} {kind}\n"
        yield from lines[name]


def _add_check(lines: Lines, check: CheckSeries) -> None:
    labels = render_labels(check_labels(check.identity))

    def add(family: str, value: float | None, more: str = "") -> None:
        if value is not None:
            lines[family].append(f"{family}{{{labels}{more}}} {value}\n")

    for status in CheckStatus:
        is_it = int(check.status is status)
        add("picket_check_status", is_it, f',status="{status.value}"')
    for ended in ResultStatus:
        count = check.results.get(ended, 0)
        add("picket_check_result_total", count, f',status="{ended.value}"')
    add("picket_check_response_time_seconds", _to_seconds(check.response_time_ms))
    for phase, took_ms in check.timings_ms.items():
        add("picket_check_timing_seconds", _to_seconds(took_ms), f',phase="{phase}"')
    for stat, took_ms in check.latency_ms.items():
        add("picket_check_latency_seconds", _to_seconds(took_ms), f',stat="{_escape(stat)}"')
    add("picket_check_packet_loss_ratio", check.packet_loss_ratio)
    for vital, took_ms in check.vitals_ms.items():
        add("picket_browser_web_vitals_seconds", _to_seconds(took_ms), f',vital="{vital}"')
    add("picket_browser_layout_shift", check.layout_shift)
    add("picket_certificate_expiry_seconds", check.expires_in_s)
    add("picket_heartbeat_last_ping_timestamp_seconds", check.last_ping_s)
    add("picket_heartbeat_expected_interval_seconds", check.ping_interval_s)


def _add_location(lines: Lines, one: LocationSeries) -> None:
    labels = render_labels(
        {
            "private_location_id": one.id,
            "private_location_name": one.name,
            "private_location_slug_name": one.slug_name,
        }
    )
    values = {
        "picket_private_location_queue_size": one.queue_size,
        "picket_private_location_oldest_wait_seconds": one.oldest_wait_ms / 1000,
        "picket_private_location_agents": one.agents,
    }
    for family, value in values.items():
        lines[family].append(f"{family}{{{labels}}} {value}\n")


def check_labels(check: CheckIdentity) -> dict[str, str]:
    """The labels of a check's series; a tag `key:value` is one of them."""
    labels = {
        "name": check.name,
        "check_id": check.id,
        "check_type": check.type.value.lower(),
        "group": check.group,
        "muted": str(check.muted).lower(),
        "activated": str(check.activated).lower(),
    }
    plain = sorted(tag for tag in check.tags if ":" not in tag)
    labels["tags"] = ",".join(plain)
    for tag in sorted(set(check.tags).difference(plain)):
        key, _, value = tag.partition(":")
        labels.setdefault(name_label(key.strip()), value.strip())
    return labels


def name_label(key: str) -> str:
    """The label of a tag; `tag_` before what Prometheus or the page itself means otherwise."""
    name = _NO_NAME.sub("_", key)
    return f"tag_{name}" if not name or _BAD_BEGIN.match(name) or name in _OWN_LABELS else name


def render_labels(labels: Mapping[str, str]) -> str:
    """Labels as they stand between braces."""
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return value.translate(_ESCAPES)


def _to_seconds(took_ms: float | None) -> float | None:
    return None if took_ms is None else round(took_ms / 1000, 9)
