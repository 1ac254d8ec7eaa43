"""What are the machines?

GPUs, their architectures, the cluster around them, measured interconnects and published failure rates.
"""
