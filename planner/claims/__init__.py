"""Claims of the literature on the savings of lower precision: the claims, the evidence on them, and the verdicts."""
