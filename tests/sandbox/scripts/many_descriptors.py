"""Opens files until it may not."""

import os

held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as problem:
    os.write(3, f'[{len(held)}, "{problem.strerror}"]\n'.encode())
