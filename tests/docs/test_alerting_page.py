"""docs/alerting.md shows the transition table by which the code goes, and its picture."""

import re
from pathlib import Path

from service.alerting.rules import TRANSITIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "alerting.md").read_text(encoding="utf-8")


def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    rows = re.findall(r"^\| ([A-Z]+) \| ([A-Z]+) \| `(\w+)` \| ([a-z ]+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (before.value, now.value, one.alert_type.value, one.condition.value)
        for (before, now), one in TRANSITIONS.items()
    ]


def test_the_picture_has_each_transition_that_makes_an_alert() -> None:
    arrows = re.findall(r"^    ([A-Z]+) --> ([A-Z]+): (\w+)$", PAGE, re.MULTILINE)
    assert sorted(arrows) == sorted(
        (before.value, now.value, one.alert_type.value)
        for (before, now), one in TRANSITIONS.items()
        if one.alert_type.value != "NO_ALERT"
    )
