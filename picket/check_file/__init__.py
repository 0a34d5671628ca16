"""The file that `picket run` reads."""
