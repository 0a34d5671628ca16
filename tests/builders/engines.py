"""On which engines a test runs; without a mark here on SQLite and on PostgreSQL."""

import pytest

ON_SQLITE = pytest.mark.parametrize("postgresql_url", ["sqlite"], indirect=True)
"""For tests of the file, or of the driver's own means."""

ON_POSTGRESQL = pytest.mark.parametrize("postgresql_url", ["postgresql"], indirect=True)
"""For tests of several services on one database."""
