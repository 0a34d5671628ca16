"""What is said of a data folder that cannot be used. Pure."""


def unusable(problem: OSError) -> str:
    """The folder, why, and the setting that names it."""
    if problem.strerror is None:
        return str(problem)  # a sentence of our own
    where = f"{problem.filename} cannot be used" if problem.filename else "it cannot be used"
    return f"{where}: {problem.strerror}; name a folder in AGENT_DATA_DIR that the agent may write"
