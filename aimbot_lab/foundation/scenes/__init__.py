"""What a kind of world says of its rows to be looked at and edited by a person, on a page."""
