"""Parts of a network beside its layers: encoders of units and of plain columns, the target head.

Policies put them together; `part_checks` and `summary` know them without loading torch.
"""
