"""`python -m neupath.cli`."""

from neupath.cli import main

if __name__ == "__main__":
    main()
