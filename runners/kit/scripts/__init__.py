"""Setup and teardown scripts: the runtimes, warm Node processes, what goes in and comes out."""
