import subprocess
import sys


def said_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_program_loads_nothing_before_it_can_load_it_leanly() -> None:
    program = "import service.__main__, sys; print({'fastapi', 'structlog'} & sys.modules.keys())"
    assert said_by(program) == "set()"


def test_what_is_loaded_leanly_is_never_looked_through_for_garbage_and_comes_without_rich() -> None:
    program = """
import gc, sys
from service import __main__ as lean
with lean.loading():
    import structlog
    print(gc.isenabled(), end=" ")
print(gc.isenabled(), gc.get_freeze_count() > 10_000, sys.modules["rich"])
"""
    assert said_by(program) == "False True True None"


def test_a_failed_import_leaves_the_collector_on() -> None:
    program = """
import gc
from service import __main__ as lean
try:
    with lean.loading():
        import service.nothing_of_that_name
except ImportError:
    print(gc.isenabled())
"""
    assert said_by(program) == "True"


def test_what_somebody_has_loaded_already_stays() -> None:
    """As under `picket service`."""
    program = """
import sys
sys.modules["rich"] = "as it was"
from service import __main__ as lean
with lean.loading():
    pass
print(sys.modules["rich"])
"""
    assert said_by(program) == "as it was"
