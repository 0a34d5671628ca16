"""Code compiled ahead is used where it is whole and of the very libraries that are there."""

import json
import zlib
from pathlib import Path

import pytest

from runners.scripting.node.runtimes import find_code_cache_fault

CODE = b"compiled by V8"


def lay_out(folder: Path) -> tuple[Path, Path]:
    """A cache of one library, as `code_cache.cjs` writes it, and the folder of libraries."""
    modules = folder / "node_modules"
    modules.mkdir()
    source = modules / "tea.js"
    source.write_text("exports.name = 'green';")
    index = {str(source): [0, len(CODE), zlib.crc32(source.read_bytes())]}
    return written(folder, index), modules


def written(folder: Path, index: object) -> Path:
    rest = json.dumps(index).encode() + b"\n" + CODE
    cache = folder / "code-cache"
    cache.write_bytes(b"%d\n" % zlib.crc32(rest) + rest)
    return cache


def test_one_that_is_whole_is_used(tmp_path: Path) -> None:
    assert find_code_cache_fault(*lay_out(tmp_path)) is None


@pytest.mark.parametrize("begin", [0, 12, 40, -8, -1])
def test_one_that_is_damaged_anywhere_is_not(tmp_path: Path, begin: int) -> None:
    cache, modules = lay_out(tmp_path)
    content = bytearray(cache.read_bytes())
    content[begin] ^= 1
    cache.write_bytes(content)
    assert (
        find_code_cache_fault(cache, modules)
        == "it is damaged, or was made by another version of Picket"
    )


@pytest.mark.parametrize("kept_bytes", [0, 1, 30])
def test_one_that_is_cut_off_is_not(tmp_path: Path, kept_bytes: int) -> None:
    cache, modules = lay_out(tmp_path)
    cache.write_bytes(cache.read_bytes()[:kept_bytes])
    assert (
        find_code_cache_fault(cache, modules)
        == "it is damaged, or was made by another version of Picket"
    )


@pytest.mark.parametrize("index", [7, [], {"/tea.js": [0, 9]}, {"/tea.js": None}])
def test_one_with_an_index_of_another_kind_is_not(tmp_path: Path, index: object) -> None:
    _, modules = lay_out(tmp_path)
    said = find_code_cache_fault(written(tmp_path, index), modules)
    assert said == "it is damaged, or was made by another version of Picket"


def test_one_of_a_library_that_has_changed_is_not_though_its_length_is_the_same(
    tmp_path: Path,
) -> None:
    cache, modules = lay_out(tmp_path)
    source = modules / "tea.js"
    source.write_text(source.read_text().replace("green", "black"))
    assert find_code_cache_fault(cache, modules) == f"{source} has changed since"
    source.unlink()
    assert find_code_cache_fault(cache, modules) == f"{source} has changed since"


def test_one_of_libraries_elsewhere_is_not(tmp_path: Path) -> None:
    cache, modules = lay_out(tmp_path)
    elsewhere = tmp_path / "other/node_modules"
    assert (
        find_code_cache_fault(cache, elsewhere)
        == f"it is of {modules / 'tea.js'}, outside {elsewhere}"
    )


def test_one_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert find_code_cache_fault(tmp_path, tmp_path) == "it cannot be read: Is a directory"
