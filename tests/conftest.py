"""What every test needs: the root on the path, so that `tests.builders` imports; no stop-watch."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

# A busy machine is no broken law: no example may fail for taking long, or for being slow to make.
settings.register_profile("picket", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("picket")
