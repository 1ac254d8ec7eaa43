"""The shapes of models, both transformers and convolutional networks.

They come from the catalogue, a parameter count, or a Hugging Face `config.json`.
"""
