"""Faces: a world as the environments that libraries expect.

Written once against `BatchWorld`; only `faces.registry` knows which worlds exist. Imported by
training and experiment.
"""
