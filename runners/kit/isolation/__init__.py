"""Programs that nobody trusts: processes, user, folder and limits of their own, and their end."""
