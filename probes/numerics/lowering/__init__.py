"""Layers turned to a lower precision: for real where the device supports it, else by exact quantise–dequantise."""
