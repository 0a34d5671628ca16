"""The table of docs/secrets.md is what happens, and none of its cells is empty."""

from pathlib import Path

import pytest

from tests.builders.secret_places import HIDDEN, LEFT_OUT, PLACES, WITHHELD
from tests.docs.secret_table import BEGINS, ENDS, FORMS, PAGE, head, row

TABLE = PAGE.read_text().partition(BEGINS)[2].partition(ENDS)[0]


@pytest.mark.parametrize(("registry", "form"), FORMS)
async def test_a_row_tells_what_becomes_of_a_secret_in_each_place(
    registry: str, form: str, tmp_path: Path
) -> None:
    assert await row(registry, form, tmp_path) in TABLE


def test_the_table_has_each_form_once_and_no_empty_cell() -> None:
    assert TABLE.startswith(head())
    rows = [line.strip("| ").split(" | ") for line in TABLE.removeprefix(head()).splitlines()]
    assert [cells[0] for cells in rows] == [f"{registry}: {form}" for registry, form in FORMS]
    assert all(len(cells) == len(PLACES) + 1 for cells in rows)
    assert {cell for cells in rows for cell in cells[1:]} <= {HIDDEN, WITHHELD, LEFT_OUT}
