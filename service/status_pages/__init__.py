"""Status pages: what an account shows of its services to everybody."""
