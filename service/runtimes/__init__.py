"""The runtimes that scripts of a check can name."""
