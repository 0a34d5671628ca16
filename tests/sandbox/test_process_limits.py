"""The tools that set limits are named when they are missing."""

import shutil

import pytest

from sandbox.errors import HostError
from sandbox.spawn import find_tools


def test_a_system_without_the_tools_is_told_which_and_where_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None if "p" in name else f"/bin/{name}")
    with pytest.raises(HostError, match="prlimit and setpriv not found; install util-linux"):
        find_tools()
