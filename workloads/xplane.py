"""What a profiler saw: GPU kernels, counted in the file that TensorFlow and JAX leave.

The file is a protocol buffer (XSpace: planes of lines of events). Its few fields are read by their
numbers here, because the code that knows their names comes with packages that may be missing.
"""

import os
import shutil
import tempfile

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_PLANES, _NAME, _LINES, _EVENTS = 1, 2, 3, 4  # XSpace.planes; XPlane.name, .lines; XLine.events
# XPlane.event_metadata, a map: its entries have the value, an XEventMetadata, in field 2.
_METADATA, _VALUE, _ID = 4, 2, 1
_GPU = "/device:GPU:"
# What a GPU does besides computing.
_TRANSFERS = ("memcpy", "memset")


def watch(start, stop, step):
    """Count the GPU kernels of `step()`; None where the profiler saw no GPU at all."""
    folder = tempfile.mkdtemp(prefix="stackrace-profile-")
    try:
        start(folder)
        try:
            step()
        finally:
            stop()
        raw = [read(path) for path in files(folder)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = [count for count in map(kernels, raw) if count is not None]
    return sum(counts) if counts else None


def files(folder):
    """Profiles below a folder."""
    return [
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(".xplane.pb")
    ]


def read(path) -> bytes:
    """All of a file."""
    with open(path, "rb") as file:
        return file.read()


def kernels(raw):
    """How many kernels ran on GPUs, in one profile; None where it has no GPU."""
    found = None
    for plane in _all(raw, _PLANES):
        name = _text(plane, _NAME)
        if not name.startswith(_GPU):
            continue
        names = dict(_metadata(entry) for entry in _all(plane, _METADATA))
        for line in _all(plane, _LINES):
            # Newer profilers add lines that sum up others: kernels are those of the streams.
            if not _text(line, _NAME).startswith("Stream"):
                continue
            events = [names.get(_number(event, _ID), "") for event in _all(line, _EVENTS)]
            found = (found or 0) + sum(not event.lower().startswith(_TRANSFERS) for event in events)
        found = found or 0
    return found


def _metadata(entry):
    value = next(iter(_all(entry, _VALUE)), b"")
    return _number(value, _ID), _text(value, _NAME)


def _all(raw, wanted):
    return [value for field, value in _fields(raw) if field == wanted and isinstance(value, bytes)]


def _text(raw, wanted) -> str:
    return next(iter(_all(raw, wanted)), b"").decode("utf-8", "replace")


def _number(raw, wanted) -> int:
    return next((v for f, v in _fields(raw) if f == wanted and isinstance(v, int)), 0)


def _fields(raw):
    """Numbers and values of a message's fields: int, or the bytes of whatever it is."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
        else:
            size = _FIXED.get(kind)
            if kind == _BYTES:
                size, at = _varint(raw, at)
            if size is None or at + size > len(raw):
                raise ValueError("The profile is no XSpace message.")
            value, at = raw[at : at + size], at + size
        yield field, value


def _varint(raw, at):
    value = shift = 0
    while True:
        if at >= len(raw):
            raise ValueError("The profile ends in the middle of a number.")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that more follows)
            return value, at
        shift += 7
