"""The figures of the notebooks, so that their cells show the method and not the plotting."""
