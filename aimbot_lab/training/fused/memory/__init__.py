"""The fused engine for policies with a memory: what differs from that of plain layers.

A memory and an encoder of plain columns before it are known; `core.lstm` has the formulas.
"""
