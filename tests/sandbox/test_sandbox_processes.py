"""Scripts that multiply, hide, hang or strike: none outlives its run, none hurts the agent."""

import signal
from queue import Queue
from threading import Event, Thread, get_native_id

from sandbox.processes import send_signal
from tests.sandbox.worlds import in_every_world, needs_root, play, play_short


@in_every_world
def test_a_script_that_ignores_polite_signals_is_ended(world: str) -> None:
    ended = play_short(world, "ignores_sigterm.js")["ended"]
    assert ended["timed_out"]
    assert ended["exit_code"] is None


@in_every_world
def test_a_fork_bomb_is_ended_to_the_last_process(world: str) -> None:
    ended = play_short(world, "forks.py")["ended"]
    assert ended["timed_out"] or ended["stopped_because"]


@in_every_world
def test_processes_that_change_their_number_all_the_time_are_ended(world: str) -> None:
    play(world, "slippery.py")


@in_every_world
def test_orphans_that_have_ended_do_not_pile_up_while_a_script_runs(world: str) -> None:
    assert play(world, "leaves_orphans.py")["facts"] == ["0"]


@in_every_world
def test_a_daemon_without_environment_does_not_outlive_its_run(world: str) -> None:
    assert play(world, "daemon.py")["facts"] == ['"left"']


@in_every_world
def test_detached_processes_of_node_do_not_outlive_their_run(world: str) -> None:
    assert play(world, "daemon.js")["ended"]["exit_code"] == 0


@in_every_world
def test_a_daemon_that_lowers_its_tag_does_not_outlive_its_run(world: str) -> None:
    assert play(world, "without_tag.py")["ended"]["exit_code"] == 0


@in_every_world
def test_whoever_holds_the_outputs_open_does_not_hold_up_the_run(world: str) -> None:
    ended = play(world, "holds_stdout.py")["ended"]
    assert not ended["timed_out"]
    assert [line["message"] for line in ended["log"]] == ["said"]


@needs_root
def test_a_kill_of_everybody_does_not_reach_the_agent() -> None:
    told = play("root of a container", "kills_all.py")
    assert told["facts"] == ['"PermissionError"']


def test_the_number_of_a_thread_is_no_process_to_signal() -> None:
    numbers, is_over = Queue[int](), Event()
    thread = Thread(target=lambda: (numbers.put(get_native_id()), is_over.wait()))
    thread.start()
    try:
        assert not send_signal(numbers.get(), signal.SIGKILL, when=lambda _: True)
    finally:
        is_over.set()
        thread.join()
