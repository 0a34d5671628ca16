"""The kinds of channels, one module each."""
