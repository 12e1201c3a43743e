"""How fast one training goes in several processes, and what their exchange takes."""
