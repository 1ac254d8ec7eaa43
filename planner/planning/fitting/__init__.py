"""What fits into the memory of a GPU: what is short where nothing does, and which ways to train would."""
