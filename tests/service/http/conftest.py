"""What the tests of this folder share."""

import pytest


@pytest.fixture
def postgresql_url() -> None:
    """These tests are of what lies above the database: SQLite is enough for them."""
