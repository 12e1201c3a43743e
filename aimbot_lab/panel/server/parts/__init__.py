"""The parts of the page, one module each; `table.py` lists them."""
