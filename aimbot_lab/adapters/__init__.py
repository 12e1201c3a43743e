"""Adapters: a world as the environments that libraries expect.

Written once against `BatchWorld`.
"""
