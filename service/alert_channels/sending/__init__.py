"""What the kinds of channels send by: requests, mails, and what may be reached."""
