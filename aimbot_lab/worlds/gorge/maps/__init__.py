"""Maps as data: read from YAML files, checked, generated, drawn, kept with a run.

The shipped ones are in `data`, where README.md describes their format.
"""
