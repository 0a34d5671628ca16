"""Files are named as the author of a script knows them."""

from pathlib import Path

import pytest

from runners.scripting.node.files import UserPaths, append_place

ROOT = Path("/tmp/run-1/check")
PACKAGES = (Path("/opt/runtimes/2026.04"), Path("/var/lib/agent/packages"))
KEPT = f"{PACKAGES[1]}/{'0f' * 32}.{'1a' * 8}"
PATHS = UserPaths(ROOT, packages=PACKAGES)
IN_MONOREPO = UserPaths(ROOT, working_dir=ROOT / "packages/e2e")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"at x ({ROOT}/pages/login.ts:3:5)", "at x (pages/login.ts:3:5)"),
        (f"imported from file://{ROOT}/shop.mjs", "imported from shop.mjs"),
        (f"at y ({KEPT}/node_modules/a/b.js:1:2)", "at y (node_modules/a/b.js:1:2)"),
        (
            f"file://{PACKAGES[0]}/node_modules/a/node_modules/b.js",
            "node_modules/a/node_modules/b.js",
        ),
        ('Received: "/static/node_modules/a.js"', 'Received: "/static/node_modules/a.js"'),
        ("GET /static/node_modules/a.js 404", "GET /static/node_modules/a.js 404"),
        ("open '/data/node_modules/x'", "open '/data/node_modules/x'"),
        ("https://cdn.test/node_modules/a.js", "https://cdn.test/node_modules/a.js"),
        ("./node_modules/a.js", "./node_modules/a.js"),
        ("no path at all", "no path at all"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_path_of_the_agents_becomes_the_authors(said: str, shown: str) -> None:
    assert PATHS.line(said) == shown


@pytest.mark.parametrize(
    "piece", [",/", ",/a", "/opt/runtimes/2026.04/", "/var/lib/agent/packages/0"]
)
def test_what_a_script_prints_does_not_make_it_slow(piece: str) -> None:
    # The expression before took minutes for that.
    said = piece * (1_000_000 // len(piece))
    assert PATHS.line(said) == said


def test_paths_count_from_the_working_directory() -> None:
    said = f"{ROOT}/packages/e2e/a.spec.ts asks {ROOT}/packages/pages/index.js"
    assert IN_MONOREPO.line(said) == "a.spec.ts asks ../../packages/pages/index.js"


def test_the_way_through_playwright_to_the_authors_file_is_left_out() -> None:
    said = (
        f"Error: Cannot find module 'x'\nRequire stack:\n- {ROOT}/a.spec.js\n"
        f"- {PACKAGES[0]}/node_modules/playwright/lib/program.js\n"
        f"- {PACKAGES[0]}/node_modules/playwright/cli.js"
    )
    known = "Error: Cannot find module 'x'"
    assert PATHS.error(said) == f"{known}\nRequire stack:\n- a.spec.js"
    assert PATHS.error(said.replace(f"- {ROOT}/a.spec.js\n", "")) == known


def test_a_syntax_errors_place_is_said_once() -> None:
    said = f'SyntaxError: {ROOT}/a.spec.ts: Unexpected token, expected "," (4:40)'
    assert PATHS.error(said, "a.spec.ts:4:41") == 'SyntaxError: Unexpected token, expected ","'
    assert PATHS.error(said) == 'SyntaxError: a.spec.ts: Unexpected token, expected "," (4:40)'
    elsewhere = PATHS.error(said, "b.ts:1:1")
    assert elsewhere == 'SyntaxError: a.spec.ts: Unexpected token, expected "," (4:40)'


def test_an_errors_place_stands_behind_its_first_line() -> None:
    assert (
        append_place("Error: no\n\nExpected: 1\n", "a.ts:1:2")
        == "Error: no (a.ts:1:2)\n\nExpected: 1"
    )
    assert append_place("Error: no", None) == "Error: no"
