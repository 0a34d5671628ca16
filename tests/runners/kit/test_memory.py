"""How much memory there is, and how much is used."""

import os
from pathlib import Path

import pytest

from runners.kit import memory
from runners.kit.memory import available_mb, ended_for_want_of_memory, enough_memory_for, used_mb

MB = 1024 * 1024


def machine(folder: Path, available_mb: int) -> Path:
    (folder / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {available_mb * 1024} kB\n")
    return folder


def container(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "cgroup"


def test_a_machine_without_limits_has_what_it_says(tmp_path: Path) -> None:
    files = {"memory.max": "max\n", "memory.current": f"{100 * MB}\n"}
    assert available_mb(machine(tmp_path, 700), container(tmp_path, files)) == 700


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    files = {
        "memory.max": f"{500 * MB}\n",
        "memory.current": f"{450 * MB}\n",
        "memory.stat": f"anon 1\ninactive_file {30 * MB}\n",
    }
    assert available_mb(machine(tmp_path, 700), container(tmp_path, files)) == 80


def test_an_older_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": f"{500 * MB}\n",
        "memory/memory.usage_in_bytes": f"{450 * MB}\n",
    }
    assert available_mb(machine(tmp_path, 700), container(tmp_path, files)) == 50


def test_what_the_system_ended_for_want_of_memory_is_counted(tmp_path: Path) -> None:
    events = {"memory.events": "low 0\noom 4\noom_kill 3\n"}
    assert ended_for_want_of_memory(container(tmp_path, events)) == 3


async def test_a_heavy_job_starts_when_there_is_room_and_is_told_when_there_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([100.0, 300.0])
    monkeypatch.setattr(memory, "available_mb", lambda: next(answers))
    assert await enough_memory_for(200, wait_s=60)
    monkeypatch.setattr(memory, "available_mb", lambda: 100.0)
    assert not await enough_memory_for(200, wait_s=0)


def test_a_process_uses_memory_and_one_that_is_gone_none() -> None:
    assert used_mb([os.getpid()]) > 5
    assert used_mb([2**30]) == 0
