"""Which kernels and collectives does the step of one layout consist of, with which shapes, rates and sources?"""
