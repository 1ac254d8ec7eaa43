"""Recipes in 8 bits."""
