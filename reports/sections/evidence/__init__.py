"""What the answer is based on: sources, assumptions, gaps, what drives the range, records and accuracy."""
