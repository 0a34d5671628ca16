"""Lists and forms of the resources that people set up: one module for each."""
