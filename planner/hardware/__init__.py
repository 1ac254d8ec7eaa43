"""The machines: GPUs, their architectures, the cluster around them, measured interconnects and failure rates."""
