"""Which Picket this is."""

from typing import Final

RELEASE: Final = "0.1.0"
"""The same as in pyproject.toml, which a test holds; asking the installed package for it would cost
the idle agent 0.8 MB of memory."""
