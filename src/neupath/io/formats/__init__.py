"""Readers of file formats of other projects, one module each; `io.recognition` calls the reader of a format."""
