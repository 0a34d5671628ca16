import pytest

from contract.checks import Dependency
from contract.scripts import (
    MAX_SCRIPT_BYTES,
    dependencies_problem,
    path_problem,
    script_problem,
    sha256_problem,
    snippet_name_problem,
    snippets_of_scripts,
    snippets_of_snippet,
)

LONGEST_PATH = "/".join(["x" * 199] * 5) + "x"


def test_a_script_is_counted_in_bytes() -> None:
    assert script_problem("ü" * (MAX_SCRIPT_BYTES // 2)) is None
    said = script_problem("ü" * (MAX_SCRIPT_BYTES // 2) + "x")
    assert said == f"has {MAX_SCRIPT_BYTES + 1} bytes; use at most {MAX_SCRIPT_BYTES}"


def test_half_a_surrogate_pair_is_counted_and_not_a_fault() -> None:
    assert script_problem("\ud800") is None


def test_a_script_says_something() -> None:
    assert script_problem(" \n") == "is empty"


@pytest.mark.parametrize("path", ["./setup.js", "../a/shop.spec.ts", "setup.mjs\n"])
def test_the_path_of_a_script_is_no_script(path: str) -> None:
    told = f"is {path.strip()}, the path of a file; the text of the script belongs here"
    assert script_problem(path) == told


@pytest.mark.parametrize("script", ["require('./setup.js')", "a.js()", "1", "a.js; b.js"])
def test_a_short_script_is_no_path(script: str) -> None:
    assert script_problem(script) is None


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x.js",
        "a/../x.js",
        "a//x.js",
        "",
        ".",
        "a\\x.js",
        "a\nx",
        "x" * 1001,
        "node_modules/x.js",
        "x" * 241,
    ],
)
def test_a_path_cannot_leave_the_folder_of_the_check(path: str) -> None:
    assert path_problem(path) is not None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../a.js", "is ../a.js; it must lead down "),
        ("", "is empty; it must lead down "),
        ("/a.js", "is /a.js; use a relative path "),
        ("C:\\tests\\a.js", "is C:\\tests\\a.js; use a relative path "),
        ("../@shop/[id] (1)/ü.ts", "is ../@shop/[id] (1)/ü.ts; it must lead down "),
        (f"{'x' * 200}/..", f"is {'x' * 100}…; it must lead down "),
    ],
)
def test_a_path_that_is_refused_is_shown(path: str, said: str) -> None:
    assert str(path_problem(path)).startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        *("const pin = 'hush';\nlogin(pin)", "const pin = 'hush'; // see /etc"),
        *("https://me:hush@git.test/a", f"/pl_{'hush' * 10}", "../\u202ehush", "/\x1b[31mhush"),
    ],
)
def test_what_is_no_path_at_all_is_told_by_its_kind(text: str) -> None:
    problem = str(path_problem(text))
    assert problem.startswith("is a text; ")
    assert "hush" not in problem


@pytest.mark.parametrize(
    "path", ["login.js", "pages/shop/login.ts", "a b/ü.js", "..a/.b", "x" * 240, LONGEST_PATH]
)
def test_a_path_leads_down(path: str) -> None:
    assert path_problem(path) is None


def test_a_path_is_as_long_as_it_is_said_to_be_at_most() -> None:
    assert path_problem(LONGEST_PATH + "x") == "has 1001 characters; use at most 1000"
    assert path_problem("ü" * 121) == "has a part of more than 240 bytes between two slashes"
    assert path_problem("ü" * 120) is None


def test_two_files_cannot_stand_at_one_place() -> None:
    one = Dependency(path="a.js", content="")
    assert dependencies_problem((one,), script_path=None) is None
    assert dependencies_problem((one, one), script_path=None) == (
        "[1].path",
        "is a.js, which another file of the check has",
    )
    found = dependencies_problem((one,), script_path="a.js")
    assert found is not None
    assert found[0] == "[0].path"


@pytest.mark.parametrize(("first", "then"), [("a", "a/b"), ("a/b", "a")])
def test_a_file_is_no_folder(first: str, then: str) -> None:
    files = [Dependency(path=path, content="") for path in (first, then)]
    found = dependencies_problem(files, script_path=None)
    assert found == ("[1].path", f"is {then}, but one of its parts is a file already")


def test_a_check_has_a_few_files_at_most() -> None:
    many = tuple(Dependency(path=f"{order}.js", content="") for order in range(201))
    assert dependencies_problem(many, script_path=None) == ("", "has 201 files; use at most 200")
    assert dependencies_problem(many[:200], script_path=None) is None


def test_a_file_is_as_bounded_as_a_script() -> None:
    large = Dependency(path="a.js", content="x" * (MAX_SCRIPT_BYTES + 1))
    found = dependencies_problem((large,), script_path=None)
    said = f"has {MAX_SCRIPT_BYTES + 1} bytes; use at most {MAX_SCRIPT_BYTES}"
    assert found == ("[0].content", said)
    whole = Dependency(path="a.js", content="x" * MAX_SCRIPT_BYTES)
    assert dependencies_problem((whole,), script_path=None) is None


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".hidden", "", "  ", "a'b", "x.js", "n" * 241, "a\\b"]
)
def test_a_snippet_is_named_as_a_file_can_be(name: str) -> None:
    assert snippet_name_problem(name) is not None


@pytest.mark.parametrize("name", ["login", "Create a JWT", "ü-1.2", "n" * 240])
def test_a_snippet_may_be_named_in_words(name: str) -> None:
    assert snippet_name_problem(name) is None


def test_a_content_address_is_spelt_one_way() -> None:
    assert sha256_problem("ab" * 32) is None
    assert sha256_problem("AB" * 32) is not None
    assert sha256_problem("ab" * 31) is not None


def test_scripts_name_their_snippets_in_imports_of_every_kind() -> None:
    script = """
        const { sign } = require('./snippets/sign')
        import login from "./snippets/Log in.js"
        const x = await import(`../snippets/x`)
        import page from './pages/shop.js'
    """
    assert snippets_of_scripts([script, "require('./lib/snippets/deep')"]) == {
        "sign",
        "Log in",
        "x",
        "deep",
    }


def test_a_snippet_names_others_from_beside_itself() -> None:
    assert snippets_of_snippet("require('./token.js'); require('./snippets/sign')") == {
        "token",
        "sign",
    }


def test_a_package_is_no_snippet() -> None:
    assert snippets_of_scripts(["require('snippets/sign'); require('lodash')"]) == frozenset()
