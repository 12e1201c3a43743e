"""Work on a cluster of Ray, which places it on machines and starts it anew when these die."""
