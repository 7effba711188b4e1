"""What every test starts from."""

from __future__ import annotations

import signal

# What was started with `&` ignores Ctrl-C, and with `nohup` the end of its terminal; so would all
# that the tests start and interrupt.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
