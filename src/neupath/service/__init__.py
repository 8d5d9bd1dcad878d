"""Service: everything the library can do as HTTP calls, and the explorer page; needs the extra `serve`."""
