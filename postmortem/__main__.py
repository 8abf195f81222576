"""The command, as `postmortem` and as `python -m postmortem`."""

from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]  # of which `signal` is made: it loads nothing

# while it loads there is nothing to clean up, and Ctrl-C in the middle of an import would be told as a fault
if getsignal(SIGINT) is default_int_handler:
    signal(SIGINT, SIG_DFL)


def main() -> None:
    """Run the command line of this process and exit."""
    from postmortem.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
