"""What every test needs: the root on the path, so that `tests.builders` imports; no stop-watch."""

import sys
from pathlib import Path

from hypothesis import settings

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

# A busy machine is no broken law: no example may fail for taking long.
settings.register_profile("picket", deadline=None)
settings.load_profile("picket")
