"""Readers of file formats of other projects, one module each; `io.load` recognises a format and calls its reader."""
