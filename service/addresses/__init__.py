"""The addresses from which checks reach their targets, as the operator tells them."""
