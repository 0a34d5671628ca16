"""Mails that the service sends, by the operator's SMTP server."""
