"""What fields of a page held while a secret was typed into them goes from snapshots."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redaction.policy import HIDDEN
from redaction.trace.snapshots import TypedPrefixes
from tests.builders.archives import PAGE, a_zip, events_of, hidden, lines, read_members

SECRET = "Zq7w-Kp2"


def boxes(*values: str) -> dict[str, Any]:
    """A page with a field for each value."""
    fields = (["INPUT", {"__playwright_value_": one, "id": "i"}] for one in values)
    html = ["BODY", {}, *fields]
    return {"type": "frame-snapshot", "snapshot": {"pageId": PAGE, "html": html}}


def values_of(archive: bytes) -> list[str]:
    events = events_of(read_members(archive)["0-trace.trace"])
    return [
        one[1]["__playwright_value_"] for event in events for one in event["snapshot"]["html"][2:]
    ]


@pytest.mark.parametrize("case", [str, str.upper, str.lower, "••{}".format])
def test_letters_of_a_typed_secret_go_whatever_stands_between_their_fields_and_in_any_case(
    tmp_path: Path, case: Callable[[str], str]
) -> None:
    archive = a_zip({"0-trace.trace": lines(*(boxes(case(one), "1", "yy") for one in SECRET))})
    left = hidden(tmp_path, archive, SECRET, typed=(SECRET,)).file.path.read_bytes()
    assert values_of(left) == [HIDDEN, "1", "yy"] * len(SECRET)


def test_a_typed_secret_goes_from_a_field_that_writes_it_in_other_letters(tmp_path: Path) -> None:
    grown = [boxes(SECRET[:size].upper(), SECRET[:size].lower()) for size in range(3, len(SECRET))]
    archive = a_zip({"0-trace.trace": lines(*grown)})
    left = hidden(tmp_path, archive, SECRET, typed=(SECRET,)).file.path.read_bytes()
    assert set(values_of(left)) == {HIDDEN}


def test_a_value_that_does_not_end_takes_no_longer_than_it_is() -> None:
    """Of a line that is longer than memory allows a block is the beginning: that took hours."""
    value = SECRET[:3] * 300_000
    block = b'{"type":"frame-snapshot","html":["A",{"__playwright_value_":"' + value.encode()
    for end in (b"", b"\\"):
        left, count = TypedPrefixes([SECRET]).hide(block + end)
        assert count == 1
        assert left == block.replace(value.encode(), HIDDEN.encode()) + end
