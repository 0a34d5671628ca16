"""`picket up`: service, agent and starter checks on one machine."""
