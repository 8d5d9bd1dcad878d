"""Readers of file formats of other projects, one module per format; `io.load` recognises them."""
