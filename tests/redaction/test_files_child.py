"""How the process that makes files clean shares the machine."""

import resource
import subprocess
import sys

from contract.wire import encode
from redaction.files import CleaningOrder
from redaction.files_child import TURN_S

TELL = (
    "import resource, sys; from redaction import files_child; files_child.main();"
    " print(sys.getswitchinterval(), *resource.getrlimit(resource.RLIMIT_CPU))"
)


def test_two_threads_share_its_time_and_take_turns_as_short_as_a_block_needs() -> None:
    """With turns of 5 ms what one block was searched for would wait for the next one."""
    order = encode(CleaningOrder(files=(), secrets=(), limit_s=40))
    done = subprocess.run(
        [sys.executable, "-c", TELL], input=order, capture_output=True, check=True
    )
    turn_s, soft_s, hard_s = done.stdout.split()
    assert float(turn_s) == TURN_S < 0.005
    assert int(soft_s) == int(hard_s) == 2 * 40 + 1
    assert resource.getrlimit(resource.RLIMIT_CPU) != (81, 81)
