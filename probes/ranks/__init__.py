"""Several processes that measure together: how they find each other, agree, and are timed."""
