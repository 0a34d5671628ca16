"""The release that the code names."""

from importlib.metadata import version

from contract.release import RELEASE


def test_the_release_is_the_packages_version() -> None:
    assert version("picket-monitoring") == RELEASE
