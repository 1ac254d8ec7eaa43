"""The basis of the answer: sources, assumptions, gaps, drivers of the range, records and accuracy."""
