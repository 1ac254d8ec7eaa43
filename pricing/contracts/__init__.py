"""The user's own terms: a vendor's quote, owned machines, and further costs besides the GPUs."""
