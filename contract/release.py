"""The version of Picket."""

from typing import Final

RELEASE: Final = "0.1.0"
"""The version of packages and images.

It is a constant because `importlib.metadata` would cost the idle agent 0.8 MB of memory."""
