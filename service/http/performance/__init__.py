"""What goes around FastAPI and pydantic for speed; each file names the benchmark that it earns."""
