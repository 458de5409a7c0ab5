"""Text of generated programs."""
