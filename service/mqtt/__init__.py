"""Results of test sessions over MQTT 3.1.1 on WebSocket, for the established command line."""
