"""The two sides of main.py: the request (from options to objects) and the views (from results to pages)."""
