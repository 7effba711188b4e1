"""What is chosen for a pair: its Keras, and a Python that fits everything in the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from orchestrator.errors import UsageError
from orchestrator.pairs.releases import releases, rules
from orchestrator.pairs.request import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from orchestrator.model.matrix import Matrix, Row
    from orchestrator.pairs.releases import KerasRelease

KERAS_3 = Version("2.16")  # from here on Keras is released apart from TensorFlow


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair with its Keras, the Pythons that fit it, and the row that stands closest.

    `tensorflow` is empty for the newest nightly, whose version the index tells later.
    """

    pair: Pair
    tensorflow: str
    keras: str
    pythons: tuple[str, ...]
    basis: Row

    @property
    def is_basis(self) -> bool:
        """Whether the matrix has this very pair, if it is run on the row's Python."""
        return (self.tensorflow, self.keras) == (self.basis.tensorflow, self.basis.keras)


def settle(pair: Pair, matrix: Matrix) -> Candidate:
    """The pair with what it leaves open; UsageError when it does not exist or cannot work."""
    if pair.nightly:
        newest = releases().tensorflow[_newest(releases().tensorflow)]
        pythons = _for_nightly(pair, newest.pythons)
        basis = basis_of(_newest(releases().tensorflow), matrix)
        return Candidate(
            pair=pair,
            tensorflow=pair.tensorflow or "",
            keras=pair.keras or "",
            pythons=pythons,
            basis=basis,
        )
    version = pair.tensorflow or ""
    release = releases().tensorflow.get(version)
    if release is None:
        raise UsageError(
            f"There is no TensorFlow {version} that stackrace knows.",
            why=f"It knows the releases from {next(iter(releases().tensorflow))} to "
            f"{_newest(releases().tensorflow)}.",
            fix=f"Nearest: {', '.join(near(version, releases().tensorflow))}.",
        )
    basis = basis_of(version, matrix)
    wheels = _fitting(pair, release.pythons)
    keras = _keras(pair, version, wheels, basis)
    fitting = _on_both(pair, keras, wheels)
    return Candidate(pair=pair, tensorflow=version, keras=keras, pythons=fitting, basis=basis)


def pythons(candidates: Sequence[Candidate], *, fixed: Sequence[str]) -> list[str]:
    """A Python for each: one for all where one fits, and of those one of `fixed` rows.

    Else one of `fixed` rows for each, and where none of them fits, the newest.
    """
    common = set.intersection(*(set(item.pythons) for item in candidates))
    if common:
        return [_best(common, candidates, fixed)] * len(candidates)
    return [_best(item.pythons, [item], fixed) for item in candidates]


def basis_of(version: str, matrix: Matrix) -> Row:
    """The matrix row of the same minor release, else the newest row of TensorFlow."""
    rows = [row for row in matrix.rows.values() if row.tensorflow]
    wanted = Version(version).release[:2]
    same = [row for row in rows if Version(row.tensorflow).release[:2] == wanted]
    return same[0] if same else max(rows, key=lambda row: Version(row.tensorflow))


def near(version: str, known: Iterable[str]) -> list[str]:
    """The versions of the same minor release, else the next older and newer ones."""
    wanted = Version(version)
    every = sorted(known, key=Version)
    same = [name for name in every if Version(name).release[:2] == wanted.release[:2]]
    older = [name for name in every if Version(name) < wanted][-1:]
    newer = [name for name in every if Version(name) > wanted][:1]
    return same or older + newer


def refusal(tensorflow: str, keras: str) -> str | None:
    """Why this pair cannot work, or None when nothing is known against it."""
    for rule in rules().refusals:
        if rule.holds(tensorflow, keras):
            return rule.reason
    return None


def check(version: str, keras: str, python: str, basis: Row) -> None:
    """UsageError for a pair that is known not to work, or to have no wheels for this Python.

    Releases that are not known pass: the index decides.
    """
    pair = Pair(text="", tensorflow=version, keras=keras or None, python=python)
    release = releases().tensorflow.get(version)
    wheels = (python,) if release is None else _fitting(pair, release.pythons)
    _check_keras(pair, version, wheels, basis)
    _on_both(pair, keras, wheels)


def keras_of(version: str, basis: Row, *, takes: Callable[[KerasRelease], bool]) -> str:
    """The Keras that belongs to a release of TensorFlow.

    Before 2.16 that is the one of its row: it is tied to the minor release. From then on it is the
    newest at the day of the release that `takes` accepts.
    """
    if Version(version) < KERAS_3:
        return basis.keras
    day = releases().tensorflow[version].date
    known = [
        name
        for name, release in releases().keras.items()
        if release.date <= day and takes(release) and refusal(version, name) is None
    ]
    return max(known, key=Version, default="")


def _keras(pair: Pair, version: str, wheels: Sequence[str], basis: Row) -> str:
    if pair.keras is None:
        python = pair.python
        return keras_of(version, basis, takes=lambda item: python is None or item.takes(python))
    _check_keras(pair, version, wheels, basis)
    if pair.keras not in releases().keras:
        raise UsageError(
            f"There is no Keras {pair.keras} that stackrace knows.",
            fix=f"Nearest: {', '.join(near(pair.keras, releases().keras))}.",
        )
    return pair.keras


def _check_keras(pair: Pair, version: str, wheels: Sequence[str], basis: Row) -> None:
    reason = refusal(version, pair.keras or "")
    if reason is not None:
        nearest = _nearest_pair(version, pair.keras or "", wheels, basis)
        raise UsageError(
            f"{pair.title} cannot work.", why=reason, fix=f"Nearest that can: {nearest}."
        )


def _nearest_pair(version: str, keras: str, wheels: Sequence[str], basis: Row) -> str:
    """The same TensorFlow with the Keras closest to the one asked for."""
    able = [
        name
        for name, release in releases().keras.items()
        if refusal(version, name) is None and any(release.takes(python) for python in wheels)
    ]
    if not able:
        return f"tensorflow=={version}"
    own = keras_of(version, basis, takes=lambda _: True)
    wanted = Version(keras)
    below = [name for name in able if Version(name) < wanted]
    above = [name for name in able if Version(name) > wanted]
    closest = max(below, key=Version) if below else min(above, key=Version)
    return f"tensorflow=={version}+keras=={own if own in able and not below else closest}"


def _fitting(pair: Pair, wheels: tuple[str, ...]) -> tuple[str, ...]:
    """The Pythons with wheels, or the one that the user named, when it is one of them."""
    if pair.python is None:
        return wheels
    if pair.python not in wheels:
        raise UsageError(
            f"TensorFlow {pair.tensorflow or 'nightly'} has no wheel for Python {pair.python}.",
            fix=f"It has wheels for Python {', '.join(wheels)}.",
        )
    return (pair.python,)


def _for_nightly(pair: Pair, wheels: tuple[str, ...]) -> tuple[str, ...]:
    """As `_fitting`; a nightly may have wheels for newer Pythons than the newest release."""
    newer = pair.python is not None and Version(pair.python) > Version(wheels[-1])
    return (pair.python,) if pair.python is not None and newer else _fitting(pair, wheels)


def _on_both(pair: Pair, keras: str, wheels: tuple[str, ...]) -> tuple[str, ...]:
    release = releases().keras.get(keras)
    fitting = tuple(python for python in wheels if release is None or release.takes(python))
    if fitting or release is None:
        return fitting
    raise UsageError(
        f"Keras {keras} needs Python {release.python} or newer; TensorFlow {pair.tensorflow} "
        f"{'was asked for on' if pair.python else 'has wheels for'} Python {', '.join(wheels)}.",
        fix="Leave +keras== out, and the Keras of the release's day is taken.",
    )


def _best(able: Collection[str], candidates: Sequence[Candidate], fixed: Sequence[str]) -> str:
    """One of `fixed`; that of a pair that is a row, whose lock ships; else the newest."""
    rows = [item.basis.python for item in candidates if item.is_basis]
    ready = [python for python in (*fixed, *rows) if python in able]
    return ready[0] if ready else max(able, key=Version)


def _newest(known: Iterable[str]) -> str:
    return max(known, key=Version)
