"""Target blocks: read from YAML files, checked, chosen, drawn on a sheet, kept with a run.

The shipped ones are in `data`, where README.md describes their format.
"""
