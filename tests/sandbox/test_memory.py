"""How much memory there is, and how much is used."""

import os
from pathlib import Path

from sandbox.memory import Usage, available_mb, count_oom_kills, measure_memory

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
    assert count_oom_kills(tmp_path, container(tmp_path, events)) == 3


def test_what_was_ended_elsewhere_on_the_machine_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/picket.service\n")
    (tmp_path / "vmstat").write_text("oom_kill 70\n")
    files = {
        "memory.events": "oom_kill 30\n",
        "picket.service/memory.events": "oom 2\noom_kill 0\n",
    }
    assert count_oom_kills(tmp_path, container(tmp_path, files)) == 0


def test_the_tightest_limit_counts_of_a_group_or_those_that_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("5:cpu:/a\n0::/system.slice/picket.service\n")
    files = {
        "memory.max": "max\n",
        "memory.current": f"{900 * MB}\n",
        "system.slice/memory.max": f"{600 * MB}\n",
        "system.slice/memory.current": f"{500 * MB}\n",
        "system.slice/picket.service/memory.max": f"{500 * MB}\n",
        "system.slice/picket.service/memory.current": f"{200 * MB}\n",
    }
    assert available_mb(machine(tmp_path, 700), container(tmp_path, files)) == 100


def test_the_tightest_limit_of_older_groups_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("4:memory:/docker/abc\n0::/\n")
    files = {
        "memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "memory/memory.usage_in_bytes": f"{900 * MB}\n",
        "memory/docker/abc/memory.limit_in_bytes": f"{300 * MB}\n",
        "memory/docker/abc/memory.usage_in_bytes": f"{260 * MB}\n",
    }
    assert available_mb(machine(tmp_path, 700), container(tmp_path, files)) == 40


def test_a_group_above_what_is_seen_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/../other\n")
    files = {"memory.max": "9\n", "memory.current": "9\n"}
    container(tmp_path, {f"../other/{name}": text for name, text in files.items()})
    assert available_mb(machine(tmp_path, 700), tmp_path / "cgroup") == 700


def test_what_the_machine_itself_ended_counts_too(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("nr_free_pages 9\noom_kill 7\n")
    assert count_oom_kills(tmp_path, container(tmp_path, {})) == 7


def test_a_process_uses_memory_and_one_that_is_gone_none() -> None:
    own = measure_memory([os.getpid()])
    assert own.used_mb > 5
    assert own.reserved_mb > 5
    assert measure_memory([2**30]) == Usage(0, 0, 0)
