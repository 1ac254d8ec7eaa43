"""Reading the answer's document, and leaving out what must not be shared."""
