"""Setup and teardown scripts in Node."""
