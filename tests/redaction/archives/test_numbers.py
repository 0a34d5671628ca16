"""A secret of digits leaves JSON as a number that says nothing."""

import json

import pytest

from redaction.archives.json_lines import Numbers

PIN = "482915"


@pytest.mark.parametrize("apart", [",", ", ", ",\n  "])
def test_each_of_several_numbers_in_a_row_is_hidden(apart: str) -> None:
    text = f'{{"pins":[{apart.join([PIN] * 3)}],"other":7}}'
    hidden, count = Numbers([PIN]).hide(text.encode())
    assert (json.loads(hidden), count) == ({"pins": [0, 0, 0], "other": 7}, 3)
