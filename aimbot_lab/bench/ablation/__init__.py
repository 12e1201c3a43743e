"""What each switch of hybrid_ppo brings: variants of an agent, tasks that they learn, trainings.

`bench ablation` imports it. All variants of a table play the same world and observe the same.
"""
