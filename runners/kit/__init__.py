"""What runners are made of."""
