"""Work that is counted, where a clock would tell how busy the machine is."""

import sys


def calls_of(function, *arguments, **options):
    """Return how many functions are called, of Python and of C, when one is: what a loop over values multiplies."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*arguments, **options)
    finally:
        sys.setprofile(before)
    return count
