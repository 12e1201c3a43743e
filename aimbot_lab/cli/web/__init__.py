"""Commands that serve a page, and whether there is a browser to open it."""
