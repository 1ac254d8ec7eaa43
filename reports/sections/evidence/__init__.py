"""What the answer rests on: sources, assumptions, gaps, what drives the range, records and accuracy."""
