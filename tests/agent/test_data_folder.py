"""A data folder that cannot be used is told by its setting."""

from pathlib import Path

from agent.data_folder import unusable


def test_the_folder_the_reason_and_the_setting_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    try:
        (tmp_path / "file/results").mkdir()
    except OSError as problem:
        told = unusable(problem)
    assert told == (
        f"{tmp_path}/file/results cannot be used: Not a directory;"
        " set AGENT_DATA_DIR to a folder that the agent can write"
    )


def test_a_sentence_of_our_own_stays() -> None:
    assert unusable(PermissionError("chmod o+x /srv")) == "chmod o+x /srv"
