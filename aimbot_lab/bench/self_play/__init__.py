"""How fast an agent learns that meets itself, beside one that does not."""
