"""Parts of hybrid_ppo's network beside its layers: encoders, the target head, the memory.

Policies put them together. `network_parts` tells which parts settings ask for, `part_checks` what
is wrong with them, `network_summary` what `run --dry-run` prints: all three without loading torch.
"""
