"""The whole schema."""

from typing import Final

from service.db.tables import accounts, checks, job_inputs, locations, runs
from service.db.tables.conventions import declared

SUBJECTS: Final = (accounts, locations, checks, job_inputs, runs)
"""Every module that declares tables; a test holds this equal to the folder."""
metadata: Final = declared
"""With all of their tables."""
