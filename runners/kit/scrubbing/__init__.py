"""Takes secrets out of results and files, and lets nothing go that was not looked through."""
