"""Adapters: a world as the environments that libraries expect.

Written once against `BatchWorld`. Imported by training, experiment and users of other trainers.
"""
