"""Claims of the literature on what lower precision saves: what each says, what decides it, and the verdict."""
