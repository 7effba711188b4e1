"""The process: a result is left whatever goes wrong, and no process outlives the host."""

import faulthandler
import os
import sys
import threading
from contextlib import contextmanager
from time import perf_counter

from workloads import fingerprint, knobs, models, protocol, refusals, user

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


class Phases:
    """Announces each phase to the host, and keeps how long those before the first value took."""

    def __init__(self, path, keep):
        self._path = path
        self.keep = keep  # leaves the result as it is by then
        self.seconds = {}

    def begin(self, name):
        """Say that a phase begins."""
        protocol.announce(self._path, name)

    @contextmanager
    def timed(self, name):
        """Say that a phase begins, and time it."""
        self.begin(name)
        start = perf_counter()
        yield
        self.seconds[name] = perf_counter() - start


def main():
    """Do what REQUEST.json asks, leave RESULT.json, and exit with code 0."""
    request_path, result_path = sys.argv[1:]
    faulthandler.enable()
    result = {}

    def leave(**outcome):
        with refusals.noted(result, "fingerprint"):
            result.setdefault("metadata", {}).update(fingerprint.describe())
        protocol.write_result(result_path, dict(result, **outcome))

    try:
        _work(request_path, result, keep=lambda: leave(outcome="ok"))
        result["outcome"] = "ok"
    except (Exception, SystemExit) as error:  # a library that exits has failed; Ctrl-C passes
        _fail(result, refusals.stopped(error))
    leave()


def _work(request_path, result, keep):
    _die_with_parent()
    request = protocol.read_request(request_path)
    if request.parent_pid is not None and os.getppid() != request.parent_pid:
        os._exit(1)  # it died before the kernel was asked: nobody waits for a result
    if not request.workload and request.model not in models.MODELS:
        raise protocol.malformed(
            f"model {request.model!r} is not one of {', '.join(models.MODELS)}"
        )
    knobs.before_import(request)
    if request.host_on_stdin:
        threading.Thread(target=_die_with_stdin, daemon=True).start()
    phases = Phases(request.phase_path, keep)
    result["phases_s"] = phases.seconds
    with phases.timed("import"):
        try:
            # numpy, TensorFlow and Keras come with it: importing them is what is timed, and a
            # broken one is a result like any other.
            from workloads import actions  # noqa: PLC0415

            backends = actions.load(request, result)
        except Exception as error:
            raise refusals.not_imported(error) from error
    with user.blamed(request.workload):
        actions.ACTIONS[request.action](backends, request, phases, result)


def _die_with_parent():
    """Ask the kernel to kill this process when its parent dies."""
    import ctypes  # noqa: PLC0415 (an interpreter that lacks it still leaves a result)

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def _die_with_stdin():
    """End this process when the host closes its standard input: by then the host is gone.

    A container has no parent that could tell. The thread waits in the kernel and costs nothing.
    """
    while os.read(0, 1):
        pass
    os._exit(1)


def _fail(result, stopped):
    result["outcome"] = stopped.outcome
    result["failure"] = {
        "kind": stopped.kind,
        "message": stopped.message,
        "traceback": refusals.traceback_of(stopped),
    }
