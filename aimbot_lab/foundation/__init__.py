"""What every other package may use: errors, the world protocol, episodes, seeds, kernels.

Imported by all layers, imports none of them. Holds no settings and no files.
"""
