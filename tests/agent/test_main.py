"""Threads of the agent take turns short enough for its loop to keep time beside them."""

import subprocess
import sys

LOOP_LATE_S = 0.005
"""How late the loop may wake at p99; Python's own turn is as long as that by itself."""
TELL = """
import sys
from agent import app
from agent.__main__ import main

async def run(settings):
    print(sys.getswitchinterval())
    return 0

app.run = run
sys.exit(main({"SERVICE_URL": "https://picket.example", "API_KEY": "pl_secret_key_1"}))
"""


def test_a_thread_that_computes_leaves_the_loop_its_turn_in_time() -> None:
    """Results are searched in a thread, which holds the interpreter while it compiles and hides."""
    done = subprocess.run([sys.executable, "-c", TELL], capture_output=True, check=True)
    assert 0 < float(done.stdout) <= LOOP_LATE_S / 2
