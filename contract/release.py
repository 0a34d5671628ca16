"""Which Picket this is."""

from typing import Final

RELEASE: Final = "0.1.0"
"""The version of packages and images, which are built with it; asking the installed package for it
would cost the idle agent 0.8 MB of memory."""
