"""`python -m neupath`, the command line."""

from neupath.cli import main

if __name__ == "__main__":
    main()
