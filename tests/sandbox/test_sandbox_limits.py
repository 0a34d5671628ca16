"""Scripts that take more than their share are told so, or get no more."""

import json

from tests.sandbox.worlds import WITH_FEWEST, in_every_world, needs_root, play


@in_every_world
def test_memory_past_the_limit_is_named_with_limit_and_peak(world: str) -> None:
    ended = play(world, "allocates.js", limits={"memory_mb": 200})["ended"]
    assert ended["out_of_memory"]
    assert ended["peak_mb"] > 200
    assert "its limit is 200 MB" in ended["stopped_because"]
    assert not ended["timed_out"]


@in_every_world
def test_memory_of_many_small_processes_counts_together(world: str) -> None:
    ended = play(world, "allocates.py", limits={"memory_mb": 200})["ended"]
    assert ended["out_of_memory"]


@in_every_world
def test_a_script_that_reserves_more_than_it_may_is_out_of_memory(world: str) -> None:
    ended = play(world, "reserves.py", limits={"memory_mb": 200})["ended"]
    assert ended["out_of_memory"]
    assert ended["exit_code"] == 1
    assert "its limit is 200 MB" in ended["stopped_because"]


@in_every_world
def test_the_system_takes_a_script_before_the_agent(world: str) -> None:
    (told,) = play(world, "oom_score.py")["facts"]
    assert json.loads(told) == {"own": 800, "child": 800}


@in_every_world
def test_a_file_past_the_limit_ends_the_script_and_is_named(world: str) -> None:
    ended = play(world, "big_file.py", limits={"file_mb": 20})["ended"]
    assert ended["stopped_because"] == "It wrote a file larger than 20 MB, which is the limit"


@in_every_world
def test_many_files_that_fill_the_disk_end_the_script_and_are_named(world: str) -> None:
    ended = play(world, "many_files.py", limits={"folder_mb": 50})["ended"]
    assert ended["stopped_because"] == "It left more than 50 MB of files, which is the limit"


@in_every_world
def test_files_that_are_deleted_but_open_count(world: str) -> None:
    ended = play(world, "deleted_files.py", limits={"folder_mb": 50})["ended"]
    assert ended["stopped_because"] == "It left more than 50 MB of files, which is the limit"


@in_every_world
def test_memory_without_a_name_counts_though_it_is_never_mapped(world: str) -> None:
    ended = play(world, "hidden_memory.py", limits={"memory_mb": 200})["ended"]
    assert ended["out_of_memory"]
    assert ended["peak_mb"] > 200


@needs_root
def test_files_outside_of_its_folder_count_where_a_script_has_a_user_of_its_own() -> None:
    ended = play("root of a container", "fills_tmp.py", limits={"folder_mb": 50})["ended"]
    assert ended["stopped_because"] == "It left more than 50 MB of files, which is the limit"


@in_every_world
def test_a_script_opens_no_more_files_than_allowed(world: str) -> None:
    (told,) = play(world, "many_descriptors.py", limits={"open_files": 300})["facts"]
    held, reason = json.loads(told)
    assert held < 300
    assert reason == "Too many open files"


@in_every_world
def test_a_flood_of_output_is_cut_with_a_notice_and_does_not_stop_the_script(world: str) -> None:
    told = play(world, "floods_stdout.js", limits={"log_bytes": 200_000})
    log = told["ended"]["log"]
    assert told["facts"] == ['"began"', '"done"']
    assert sum(len(line["message"]) for line in log) < 210_000
    (notice,) = (line["message"] for line in log if "left out here" in line["message"])
    assert notice.endswith(" lines are left out here: the log has a limit of 200000 bytes.")


@in_every_world
def test_facts_past_their_number_and_length_are_dropped_and_that_is_told(world: str) -> None:
    told = play(world, "floods_facts.py")
    assert told["ended"]["facts_cut"]
    assert told["fact_count"] < 20_000


@in_every_world
def test_a_script_that_closes_the_facts_goes_on(world: str) -> None:
    ended = play(world, "closes_facts.py")["ended"]
    assert (ended["exit_code"], ended["facts_cut"]) == (0, False)
    assert [line["message"] for line in ended["log"]] == ["still here"]


@in_every_world
def test_whatever_a_script_leaves_goes_however_it_is_closed(world: str) -> None:
    ended = play(world, "leaves_files.py")["ended"]
    assert ended["exit_code"] == 0, ended


@needs_root
def test_folders_that_only_their_owner_may_empty_are_removed() -> None:
    assert play(WITH_FEWEST, "sticky.py")["ended"]["exit_code"] == 0
