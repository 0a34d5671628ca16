"""Closes the facts' descriptor early, and goes on."""

import os

os.close(3)
print("still here")
