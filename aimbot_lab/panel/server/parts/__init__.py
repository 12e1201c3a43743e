"""The parts of the page, one module each; `PARTS` of `serve.py` lists them."""
