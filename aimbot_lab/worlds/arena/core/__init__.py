"""The arena's kernels: plain functions over `ArenaState` and `ArenaTables`.

They write into what they are given, allocate nothing inside a step, and import nothing but
`foundation.kernels` and each other. The duel is made of them, too.
"""
