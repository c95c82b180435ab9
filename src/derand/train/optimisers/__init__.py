"""How weights are moved until they lose least. Must not know how losses are computed."""
