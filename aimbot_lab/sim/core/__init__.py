"""The arena's kernels: plain functions over `ArenaState` and `ArenaTables`.

They write into what they are given, allocate nothing inside a step, and import nothing but
the random generator and each other. Only `sim.arena` calls them, and the bench
its `parts`.
"""
