"""Read the answer's document, and leave out parts that must not be shared."""
