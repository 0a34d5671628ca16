"""When is a check due?"""
