"""The whole schema."""

from typing import Final

from service.db.tables import (
    accounts,
    alert_channels,
    alerting,
    analytics,
    checks,
    error_groups,
    job_inputs,
    locations,
    projects,
    runs,
    sign_in,
    status_pages,
    users,
)
from service.db.tables.conventions import declared

SUBJECTS: Final = (
    accounts,
    locations,
    checks,
    job_inputs,
    runs,
    error_groups,
    alerting,
    status_pages,
    alert_channels,
    analytics,
    users,
    sign_in,
    projects,
)
"""Every module that declares tables; a test holds this equal to the folder."""
metadata: Final = declared
"""With all of their tables."""
