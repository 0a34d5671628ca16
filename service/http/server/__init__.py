"""How connections are served: between the socket and the application."""
