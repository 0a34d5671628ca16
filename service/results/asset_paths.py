"""Where the files of a result are read."""

from urllib.parse import quote


def asset_path(check_id: str, result_id: str, name: str) -> str:
    """The path of one file, from the service's address."""
    return f"/v1/check-results/{check_id}/{result_id}/assets/{quote(name)}"
