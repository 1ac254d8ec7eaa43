"""Which kernels and messages is the step of one layout made of: their shapes, rates and sources?"""
