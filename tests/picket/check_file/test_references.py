from pathlib import Path

import pytest

from contract.checks import ApiSpec, BrowserSpec, Dependency, PlaywrightSpec
from picket.check_file.load import load
from picket.errors import CommandError

REQUEST = '"request": {"url": "http://127.0.0.1/"}'


def a_file(folder: Path, text: str, **others: str) -> str:
    """A check file with other files beside it, by their paths with `__` for a slash."""
    for name, content in {"check.yaml": text, **others}.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder / "check.yaml")


def refused(source: str) -> str:
    with pytest.raises(CommandError) as caught:
        load(source)
    return str(caught.value)


def test_a_script_is_read_from_beside_the_check(tmp_path: Path) -> None:
    source = a_file(
        tmp_path,
        "type: BROWSER\nscriptFile: ./checks/shop.spec.ts\nruntimeId: '2025.04'\n",
        **{"checks__shop.spec.ts": "await page.goto('/')"},
    )
    assert load(source).spec == BrowserSpec(
        script="await page.goto('/')", script_path="checks/shop.spec.ts", runtime_id="2025.04"
    )


def test_files_that_the_script_imports_are_listed_by_path(tmp_path: Path) -> None:
    source = a_file(
        tmp_path,
        "type: BROWSER\nscriptFile: shop.js\ndependencyFiles: [./pages/login.js]\n"
        "dependencies: [{path: a.js, content: '1'}]\n",
        **{"shop.js": "1", "pages__login.js": "2"},
    )
    spec = load(source).spec
    assert isinstance(spec, BrowserSpec)
    assert spec.dependencies == (
        Dependency(path="a.js", content="1"),
        Dependency(path="pages/login.js", content="2"),
    )


def test_setup_and_teardown_are_read_from_files(tmp_path: Path) -> None:
    source = a_file(
        tmp_path,
        f"{{type: API, setupScriptFile: a.js, teardownScriptFile: b.js, {REQUEST}}}".replace(
            '"', ""
        ).replace("http://127.0.0.1/", "'http://127.0.0.1/'"),
        **{"a.js": "1", "b.js": "2"},
    )
    spec = load(source).spec
    assert isinstance(spec, ApiSpec)
    assert (spec.setup_script, spec.teardown_script) == ("1", "2")
    assert (spec.setup_script_path, spec.teardown_script_path) == ("a.js", "b.js")


def test_snippets_are_read_from_the_folder_of_the_script(tmp_path: Path) -> None:
    source = a_file(
        tmp_path,
        "type: BROWSER\nscriptFile: checks/shop.js\n",
        **{
            "checks__shop.js": "require('./snippets/sign'); require('./snippets/none')",
            "checks__snippets__sign.js": "require('./token')",
            "checks__snippets__token.js": "1",
            "checks__snippets__unused.js": "2",
        },
    )
    spec = load(source).spec
    assert isinstance(spec, BrowserSpec)
    assert [file.path for file in spec.snippets] == ["snippets/sign.js", "snippets/token.js"]


def test_a_suite_is_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    source = a_file(
        tmp_path,
        "type: PLAYWRIGHT\nsuiteFolder: ./e2e\ntestCommand: npx playwright test --grep=@smoke\n",
        **{"e2e__package.json": "{}"},
    )
    check = load(source)
    assert check.suite == tmp_path / "e2e"
    assert isinstance(check.spec, PlaywrightSpec)
    assert check.spec.test_command == "npx playwright test --grep=@smoke"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "type: BROWSER\nscriptFile: none.js\n",
            "$.scriptFile is none.js, which cannot be read: No such file or directory",
        ),
        ("type: BROWSER\nscriptFile: 5\n", "$.scriptFile is 5; use the path of a file"),
        (
            "type: BROWSER\nscriptFile: x.js\nscript: '1'\n",
            "$.scriptFile conflicts with $.script; keep one of them",
        ),
        ("type: BROWSER\nscriptFile: ../x.js\n", "$.scriptFile is ../x.js, which cannot be read"),
        ("type: BROWSER\nscriptFile: empty.js\n", "$.scriptFile is empty"),
        ("type: BROWSER\nscriptFile: large.js\n", "$.scriptFile has 524289 bytes; use at most"),
        ("type: BROWSER\nscriptFile: binary.js\n", "$.scriptFile is binary.js, which is not UTF-8"),
        ("type: BROWSER\n", "$.scriptFile is missing"),
        ("type: BROWSER\nscript: ./x.js\n", "belongs here; did you mean scriptFile?"),
        (
            "type: BROWSER\nscript: '1'\ndependencyFiles: x.js\n",
            "$.dependencyFiles is x.js; use a list of paths",
        ),
        (
            "type: BROWSER\nscript: '1'\ndependencyFiles: [none.js]\n",
            "$.dependencyFiles[0] is none.js, which cannot be read",
        ),
        (
            "type: BROWSER\nscript: '1'\nplaywrightConfig: {use: {launchOptions: {}}}\n",
            "$.playwrightConfig.use.launchOptions cannot be set here; use actionTimeout",
        ),
        (
            "type: BROWSER\nscript: '1'\ndependencyFiles: [x.js, ./x.js]\n",
            "$.dependencyFiles[1] is x.js, which another file of the check has",
        ),
        (
            "type: PLAYWRIGHT\nsuiteFolder: .\nruntimeId: '1999'\n",
            "$.runtimeId is 1999, which no agent has; use 2026.04 or 2025.04, or omit it",
        ),
        (
            "type: API\nrequest: {url: 'http://a/'}\nsetupScript: '1'\nruntimeId: '2024.02'\n",
            "$.runtimeId is 2024.02, which no agent has; use 2026.04 or 2025.04, or omit it",
        ),
        ("type: BROWSER\nscript: '1'\nruntimeId: [1]\n", "$.runtimeId is a list; use text"),
        ("type: URL\nscriptFile: x.js\nrequest: {url: 'http://a/'}\n", "is not a field here"),
        ("type: PLAYWRIGHT\n", "$.suiteFolder is missing"),
        (
            "type: PLAYWRIGHT\nsuiteFolder: none\n",
            "$.suiteFolder is none; there is no such folder; use the path of a folder",
        ),
        (
            f"type: PLAYWRIGHT\ncodeBundlePath: {'ab' * 32}\n",
            "$.codeBundlePath refers to a bundle of a service; use suiteFolder",
        ),
        (
            f"type: PLAYWRIGHT\nbundleSha256: {'ab' * 32}\n",
            "$.bundleSha256 refers to a bundle of a service; use suiteFolder",
        ),
    ],
)
def test_each_mistake_is_one_clear_sentence(tmp_path: Path, text: str, said: str) -> None:
    folder = tmp_path / "check"
    source = a_file(folder, text, **{"x.js": "1", "empty.js": "", "large.js": "x" * 524_289})
    (folder / "binary.js").write_bytes(b"\xff\xfe")
    assert said in refused(source)


def test_a_script_outside_of_the_checks_folder_has_no_place_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "x.js").write_text("1")
    source = a_file(tmp_path / "check", "type: BROWSER\nscriptFile: ../x.js\n")
    assert "$.scriptFile is ../x.js; it must lead down from the folder of the check" in refused(
        source
    )


@pytest.mark.parametrize(
    "text",
    [
        "type: PLAYWRIGHT\nsuiteFolder: .\nruntimeId: 2026.04\n",
        '{"type": "PLAYWRIGHT", "suiteFolder": ".", "runtimeId": 2026.04}',
    ],
)
def test_a_runtime_without_quotes_is_refused_as_the_api_does(tmp_path: Path, text: str) -> None:
    said = '$.runtimeId is the number 2026.04; put it in quotes, as in "2026.04"'
    assert said in refused(a_file(tmp_path, text))


def test_where_nothing_is_scripted_a_runtime_is_no_matter(tmp_path: Path) -> None:
    text = "type: API\nrequest: {url: 'http://a/'}\nruntimeId: '2024.02'\n"
    spec = load(a_file(tmp_path, text)).spec
    assert isinstance(spec, ApiSpec)
    assert spec.runtime_id is None
