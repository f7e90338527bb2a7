"""The command `gradus`."""

import signal
import sys

from gradus_rl._core import run_command


def main():
    """Runs the command line of this process, and ends it with the command's exit code."""
    # the command stops by itself when it is interrupted
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(["gradus", *sys.argv[1:]]))
