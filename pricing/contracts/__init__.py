"""What the user has of their own: a vendor's quote, owned machines, and further costs beside the GPUs."""
