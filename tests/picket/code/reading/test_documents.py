"""Which files of a folder are documents, and what they are called."""

from pathlib import Path

import pytest

from picket.code.reading.documents import Kind, read_project
from picket.errors import CommandError, ExitCode

HOME = "type: URL\nname: Home\nrequest: {url: 'http://127.0.0.1/'}\n"
GROUP = "kind: group\nname: Shop\n"


def write(root: Path, **files: str) -> Path:
    """Files of a folder; `__` in a name stands for a slash, and `_` for a full stop."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def ids(root: Path) -> dict[str, Kind]:
    return {one.logical_id: one.kind for one in read_project((root,)).documents}


def sentence(root: Path) -> str:
    with pytest.raises(CommandError) as refused:
        read_project((root,))
    assert refused.value.code is ExitCode.BAD_INPUT
    return refused.value.message


def test_the_path_of_a_file_is_the_id_of_its_document(tmp_path: Path) -> None:
    root = write(tmp_path, shop__home_yaml=HOME, shop_yml=f"id: all\n{GROUP}")
    assert ids(root) == {"shop/home": Kind.CHECK, "all": Kind.GROUP}


def test_documents_of_one_file_are_told_apart_by_their_names(tmp_path: Path) -> None:
    root = write(tmp_path, all_yaml=f"{HOME}---\n{GROUP}")
    assert ids(root) == {"all#home": Kind.CHECK, "all#shop": Kind.GROUP}
    assert [one.source for one in read_project((root,)).documents] == ["all.yaml:1", "all.yaml:5"]


def test_ids_do_not_depend_on_what_is_given_if_the_project_has_a_file(tmp_path: Path) -> None:
    write(tmp_path, picket_yaml="project: {id: shop, name: Shop checks}", a__b_yaml=HOME)
    whole, part = read_project((tmp_path,)), read_project((tmp_path / "a",))
    assert whole.documents == part.documents == read_project((tmp_path / "a/b.yaml",)).documents
    assert (whole.logical_id, whole.name) == (part.logical_id, part.name) == ("shop", "Shop checks")
    assert (whole.is_whole, part.is_whole) == (True, False)


def test_a_project_without_a_file_has_the_name_of_its_folder(tmp_path: Path) -> None:
    project = read_project((write(tmp_path / "Shop checks", a_yaml=HOME),))
    assert (project.logical_id, project.name) == ("shop-checks", "Shop checks")


def test_files_of_others_are_no_documents(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        a_yaml=HOME,
        e2e__playwright_config_ts="",
        e2e__tests__data_yaml="a: 1",
        _github__ci_yaml="a: 1",
        charts__values_yaml="a: 1",
        picket_yaml="ignore: ['charts/**', '*.mine.yaml']",
        b_mine_yaml="a: 1",
    )
    (root / "pnpm-lock.yaml").write_text("a: 1")
    (root / "node_modules").mkdir()
    (root / "node_modules/x.yaml").write_text("a: 1")
    assert ids(root) == {"a": Kind.CHECK}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: Home\n", "a.yaml has neither type nor kind"),
        ("kind: grupo\nname: a\n", "a.yaml: $.kind is grupo; did you mean group?"),
        ("kind: Deployment\nname: a\n", "a.yaml: $.kind is Deployment; use one of check, group"),
        ("kind: group\n", "a.yaml: $.name is missing"),
        (f"id: a b\n{GROUP}", "a.yaml: $.id is a b; use letters, digits and -_/#."),
        (f"physicalId: []\n{GROUP}", "a.yaml: $.physicalId is a list"),
        ("- a\n", "a.yaml has a list; a document is an object"),
        ("a: [\n", "a.yaml is not valid YAML: line 2"),
        (f"{GROUP}---\n{GROUP}", "a.yaml:1: $.id is a#shop, which another group has, too"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    assert sentence(write(tmp_path, a_yaml=text)).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("projekt: {}", "picket.yaml: $.projekt is unknown; use project or ignore"),
        ("project: {id: 'a b'}", "picket.yaml: $.project.id is a b; use letters"),
        ("project: {name: 1}", "picket.yaml: $.project.name is 1; use text"),
        ("ignore: charts", "picket.yaml: $.ignore must be a list of patterns"),
    ],
)
def test_wrong_settings_of_a_project_are_named(tmp_path: Path, text: str, said: str) -> None:
    assert sentence(write(tmp_path, picket_yaml=text, a_yaml=HOME)).startswith(said)


def test_a_folder_without_checks_is_refused(tmp_path: Path) -> None:
    assert sentence(tmp_path) == f"{tmp_path} has no check file (*.yaml, *.yml)"
    assert sentence(tmp_path / "gone") == f"{tmp_path / 'gone'} does not exist"
