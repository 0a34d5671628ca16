"""Scripts that look for what is not theirs find nothing."""

import json

import pytest

from tests.sandbox.worlds import INTERPRETERS, in_every_world, needs_root, play


@in_every_world
def test_the_agents_environment_memory_and_files_are_closed_to_a_script(world: str) -> None:
    (told,) = play(world, "reads_agent.py")["facts"]
    denied = "PermissionError"
    assert json.loads(told) == {"environ": denied, "memory": denied, "fd": denied}


@needs_root
def test_another_runs_environment_and_files_are_closed_to_a_script() -> None:
    secret = {"SECRET": "neighbours-secret"}
    neighbour = {"script": "waits.py", "interpreter": INTERPRETERS[".py"], "env": secret}
    told = play("root of a container", "reads_neighbours.py", neighbour=neighbour)
    assert told["facts"] == ["[]"]


@needs_root
def test_a_script_cannot_tell_facts_or_write_logs_in_the_name_of_another() -> None:
    neighbour = {"script": "waits.py", "interpreter": INTERPRETERS[".py"]}
    told = play("root of a container", "forges.py", neighbour=neighbour)
    assert told["facts"] == ["[]"]


@needs_root
def test_a_script_with_a_user_of_its_own_cannot_swap_the_folders_of_its_run() -> None:
    (told,) = play("root of a container", "swaps_folders.py")["facts"]
    assert set(json.loads(told).values()) == {"PermissionError"}


@in_every_world
def test_keys_of_the_agents_session_are_not_a_scripts_and_no_run_finds_what_another_left(
    world: str,
) -> None:
    for _ in range(2):
        (fact,) = play(world, "session_keys.py")["facts"]
        told = json.loads(fact)
        if told["found_bytes"] < 0:
            pytest.skip("the system keeps no keys for anybody here")
        assert told == {"found_bytes": 0, "left": True}


@in_every_world
def test_a_script_has_no_privileges_and_nothing_of_ours(world: str) -> None:
    (fact,) = play(world, "status.py", limits={"open_files": 200, "file_mb": 10})["facts"]
    told = json.loads(fact)
    caps = {told["status"][name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert caps == {"0" * 16}
    assert told["status"]["NoNewPrivs"] == "1"
    assert told["status"]["Groups"] == ""
    assert told["descriptors"] == [0, 1, 2, 3]
    assert told["session"]
    assert told["limits"] == {"FSIZE": 10 * 1024 * 1024, "CORE": 0, "NOFILE": 200}
