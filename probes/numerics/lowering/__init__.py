"""Layers turned to a lower precision: for real where the device has it, by exact quantise–dequantise elsewhere."""
