"""Laws are tried with the same examples in each run, whatever ran before."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

LITERALS = "\n".join(f"A{number} = 'of a module {number}'" for number in range(100))


def drawn() -> list[tuple[str, int]]:
    examples = []

    @settings(max_examples=200)
    @given(st.text(), st.integers())
    def law(text: str, number: int) -> None:
        examples.append((text, number))

    law()
    return examples


@pytest.mark.skipif(not settings().derandomize, reason="looks for new examples")
def test_examples_do_not_depend_on_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "loaded_meanwhile.py").write_text(LITERALS)
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("loaded_meanwhile")
    assert drawn() == before
