"""Trained agents: playing with them, and their files (safetensors, JSON, ONNX).

Loading an agent runs no code of its files.
"""
