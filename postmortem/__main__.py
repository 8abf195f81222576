"""`python -m postmortem` is the command."""

from postmortem.cli.main import main

if __name__ == "__main__":
    main()
