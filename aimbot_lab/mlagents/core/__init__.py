"""Kernels of the bridge to ML-Agents."""
