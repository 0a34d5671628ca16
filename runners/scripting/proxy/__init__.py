"""How a run's browser leaves this machine, and shows certificates."""
