"""The bars of 90 days."""

from service.incidents.model import Severity
from service.web.states import State
from service.web.status_page.history import DAYS, Affected, draw_history, merge_ms
from tests.fakes.clock import START_MS

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONG_AGO_MS = START_MS - 400 * DAY_MS


def affected(severity: Severity, began_ms: int, lasted_ms: int) -> Affected:
    """A stretch of a service's time."""
    return Affected(
        severity, began_ms, began_ms + lasted_ms, is_open=False, service_ids=frozenset({"it"})
    )


def test_each_day_has_a_bar_and_its_text() -> None:
    found = draw_history([], created_ms=LONG_AGO_MS, now_ms=START_MS)

    assert len(found.bars) == DAYS
    assert {bar.state for bar in found.bars} == {State.PASSING}
    assert [found.bars[0].text, found.bars[-1].text] == [
        "24 Aug: no incidents",
        "21 Nov: no incidents",
    ]
    assert (found.text, found.summary) == ("Last 90 days: no incidents", "")


def test_an_incident_over_midnight_is_shown_on_both_days() -> None:
    at_ms = START_MS - 10 * HOUR_MS - HOUR_MS
    found = draw_history(
        [affected(Severity.MAJOR, at_ms, 3 * HOUR_MS)], created_ms=LONG_AGO_MS, now_ms=START_MS
    )

    assert [(bar.state, bar.text) for bar in found.bars[-2:]] == [
        (State.FAILING, "20 Nov: partly down for 1 h"),
        (State.FAILING, "21 Nov: partly down for 2 h"),
    ]
    assert found.summary == "1 incident, 3 h"
    assert "2 days with incidents" in found.text


def test_the_worst_incident_gives_a_day_its_colour_and_overlaps_count_once() -> None:
    stretches = [
        affected(Severity.MINOR, START_MS - 4 * HOUR_MS, 2 * HOUR_MS),
        affected(Severity.CRITICAL, START_MS - 3 * HOUR_MS, 2 * HOUR_MS),
    ]
    found = draw_history(stretches, created_ms=LONG_AGO_MS, now_ms=START_MS)

    assert (found.bars[-1].state, found.bars[-1].text) == (State.FAILING, "21 Nov: down for 3 h")
    assert found.summary == "2 incidents, 3 h"


def test_days_before_a_service_was_there_are_not_called_good() -> None:
    found = draw_history([], created_ms=START_MS - 2 * DAY_MS, now_ms=START_MS)

    assert [bar.state for bar in found.bars[-4:]] == [State.UNKNOWN] + [State.PASSING] * 3
    assert found.bars[0].text == "24 Aug: no records yet"


def test_what_ended_before_the_first_day_is_not_counted() -> None:
    old = affected(Severity.MAJOR, START_MS - 95 * DAY_MS, HOUR_MS)

    assert draw_history([old], created_ms=LONG_AGO_MS, now_ms=START_MS).summary == ""


def test_uptime_leaves_out_what_was_down_and_not_what_was_slow() -> None:
    tenth = affected(Severity.MAJOR, START_MS - 9 * DAY_MS, DAY_MS)
    slow = affected(Severity.MEDIUM, START_MS - 5 * DAY_MS, DAY_MS)
    created_ms = START_MS - 10 * DAY_MS

    assert draw_history([tenth, slow], created_ms=created_ms, now_ms=START_MS).uptime == 0.9
    assert draw_history([slow], created_ms=created_ms, now_ms=START_MS).uptime == 1


def test_a_service_of_today_has_no_uptime_yet() -> None:
    made_ms = START_MS - DAY_MS + 1

    assert draw_history([], created_ms=made_ms, now_ms=START_MS).uptime is None


def test_time_is_counted_once_however_many_spans_hold_it() -> None:
    assert merge_ms([(0, 10), (5, 7), (8, 12), (20, 21)]) == 13
