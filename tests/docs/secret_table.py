"""Makes the table of docs/secrets.md: what becomes of a secret in each form and place."""

import asyncio
import tempfile
from pathlib import Path

from tests.builders.secret_forms import CASES
from tests.builders.secret_places import PLACES, what_is_left
from tests.docs.removals import ROOT

PAGE = ROOT / "docs/secrets.md"
BEGINS, ENDS = "<!-- table: make secret-table -->\n", "<!-- end of table -->\n"
FORMS = [(registry, form) for registry in CASES for form in CASES[registry]]


def head() -> str:
    """The table's first two lines."""
    return _row(["Form", *PLACES]) + _row(["---"] * (len(PLACES) + 1))


async def row(registry: str, form: str, folder: Path) -> str:
    """The line of one form, as the agent's own code makes it true."""
    left = await what_is_left(CASES[registry][form], folder)
    return _row([f"{registry}: {form}", *(left[place] for place in PLACES)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


async def _table() -> str:
    rows = []
    for registry, form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(await row(registry, form, Path(folder)))
    return head() + "".join(rows)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGINS)
    after = rest.partition(ENDS)[2]
    PAGE.write_text(before + BEGINS + asyncio.run(_table()) + ENDS + after)
