"""Parts of hybrid_ppo's network beside its layers: encoders, the target head, the memory.

Policies put them together. `network_parts` tells which parts settings ask for, what is wrong with
them and what `run --dry-run` prints, without loading torch.
"""
