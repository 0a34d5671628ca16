"""Taking over into a project what an account has already: `import` of the command line."""
