"""A plug-in for neupath: the measure hubsim, and a reader of .gdf files."""
