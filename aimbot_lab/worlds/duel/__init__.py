"""The duel: two agents shoot each other in one hall, both seats played through one world.

Only `worlds.registry` and this package's own modules import it. The motion, rays, gun and spin
window are the arena's: a match is two entries of `ArenaState`, each in a frame of its own.
"""
