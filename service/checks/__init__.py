"""What people want watched."""
