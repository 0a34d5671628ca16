"""A tag tells whose process it is."""

import os
import subprocess

from sandbox.processes import RunTags, is_from_dead_agent, read_tag


def test_tags_differ_from_run_to_run() -> None:
    tags = RunTags()
    assert len({tags.next_tag() for _ in range(1000)}) == 1000


def test_a_process_that_no_sandbox_started_has_no_tag() -> None:
    assert read_tag(os.getpid()) is None


def test_a_tag_is_inherited_by_children_of_children() -> None:
    tag = RunTags().next_tag()
    inner = "sh -c 'grep locks /proc/self/limits'"
    done = subprocess.run(
        ["prlimit", f"--locks={tag}", "sh", "-c", inner], capture_output=True, text=True, check=True
    )
    assert str(tag) in done.stdout


def test_a_tag_of_ours_is_of_a_living_agent() -> None:
    assert not is_from_dead_agent(RunTags().next_tag())


def test_a_tag_of_another_start_of_the_same_number_is_of_a_dead_agent() -> None:
    assert is_from_dead_agent(RunTags().next_tag() ^ (1 << 12))


def test_a_tag_of_another_container_says_nothing() -> None:
    assert not is_from_dead_agent(RunTags().next_tag() ^ (1 << 47))
