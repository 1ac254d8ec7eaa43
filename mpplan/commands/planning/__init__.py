"""Commands that make and render plans."""
