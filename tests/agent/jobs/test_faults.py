"""A type whose runs break on this machine is found, and nothing else is."""

from agent.jobs.faults import MachineFaults
from contract.checks import CheckType
from runners.scripting.playwright.verdict import BrowserDidNotStartError
from sandbox.limits import FullDiskError
from tests.builders.patience import LONG_S
from tests.builders.specs import a_spec_of, a_url_spec


async def test_a_type_whose_runs_break_twice_in_a_row_is_named_with_the_cause() -> None:
    faults = MachineFaults()
    faults.note(a_spec_of(CheckType.BROWSER), FullDiskError("The disk has 3 MB left"))
    faults.note(a_spec_of(CheckType.BROWSER), BrowserDidNotStartError("no"))
    found = await faults.next(LONG_S)
    assert found is not None
    assert (found.trial.check_type, str(found.problem)) == (CheckType.BROWSER, "no")


async def test_a_run_that_ends_between_two_that_break_keeps_the_type() -> None:
    faults = MachineFaults()
    for _ in range(3):
        faults.note(a_spec_of(CheckType.BROWSER), FullDiskError("full"))
        faults.note(a_url_spec(), ValueError("a mistake of ours"))
        faults.note_end(a_spec_of(CheckType.BROWSER))
    assert await faults.next(0.01) is None
