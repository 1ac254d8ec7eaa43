"""What is the shape of the model?

From the catalogue, a parameter count, or a Hugging Face `config.json`; transformers and convolutional networks.
"""
