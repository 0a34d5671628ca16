import subprocess
import sys

TELL = """
import gc, sys
from agent import app
from agent.__main__ import main

async def run(settings):
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)
    return 0

app.run = run
sys.exit(main({"SERVICE_URL": "https://picket.example", "API_KEY": "pl_secret_key_1"}))
"""
FAIL = """
import gc
from agent import __main__ as lean
try:
    with lean.undisturbed():
        print(gc.isenabled(), end=" ")
        import agent.nothing_of_that_name
except ImportError:
    print(gc.isenabled())
"""


def said_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_the_agent_loads_is_never_looked_through_for_garbage() -> None:
    assert said_by(TELL) == "True True"


def test_a_failed_import_leaves_the_collector_on() -> None:
    assert said_by(FAIL) == "False True"
