"""Has a secret, and waits."""

import os
import time

open("secret", "w").write("neighbours-secret")
time.sleep(600)
