"""The arena's kernels: plain functions over `ArenaState` and `ArenaTables`.

They write into what they are given, allocate nothing inside a step, and import nothing but
`foundation.kernels` and each other. Only `worlds.arena` calls them, and the
benchmarks its `parts`.
"""
