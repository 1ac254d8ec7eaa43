"""Recipes in 32 and 16 bits."""
