"""Looks for the agent's key, in its environment, its memory and its open files."""

import os
import json

parent = os.getppid()


def tried(look):
    try:
        return "got it" if b"agents-own-key" in look() else "nothing"
    except OSError as problem:
        return type(problem).__name__


def read(name):
    with open(f"/proc/{parent}/{name}", "rb") as file:
        return file.read()


def memory():
    found = b""
    for line in read("maps").decode().splitlines():
        if "[heap]" in line or "[stack]" in line:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            with open(f"/proc/{parent}/mem", "rb") as file:
                file.seek(start)
                found += file.read(end - start)
    return found


def files():
    return (
        b"".join(name.encode() for name in os.listdir(f"/proc/{parent}/fd")) and b"agents-own-key"
    )


told = {"environ": tried(lambda: read("environ")), "memory": tried(memory), "fd": tried(files)}
os.write(3, json.dumps(told).encode() + b"\n")
