"""Readers of file formats of other projects, one module each; `io.registry` lists them."""
