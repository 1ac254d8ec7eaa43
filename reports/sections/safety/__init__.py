"""Is it safe: what is known of the loss in lower precisions, and what training showed of them."""
