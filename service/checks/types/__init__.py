"""The check types of the API, one module each."""
