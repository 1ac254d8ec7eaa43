"""Student's distribution, and tests of equivalence on paired runs."""
