"""What was charged and released, durably."""
