"""`python -m localparity` is the command."""

from localparity.cli import main

if __name__ == "__main__":
    main()
