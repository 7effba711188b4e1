"""Rows for pairs that the matrix does not have: as the row of the same minor release is made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.version import Version

from orchestrator.pairs import choice
from orchestrator.pairs.releases import releases, rules, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.model.matrix import Matrix, Row
    from orchestrator.model.names import Api
    from orchestrator.pairs.choice import Candidate
    from orchestrator.pairs.request import Pair

NIGHTLY, NIGHTLY_KERAS = "tf-nightly", "keras-nightly"


def rows(
    pairs: Sequence[Pair],
    matrix: Matrix,
    *,
    fixed_pythons: Sequence[str],
    newest: Callable[[str], Mapping[str, str]],
) -> tuple[Row, ...]:
    """A row for each pair, in order; the matrix's own where it has the pair.

    `fixed_pythons`: those of the other environments of the command, in order. `newest`: for a
    Python, the pins of today's tf-nightly.
    Raises UsageError for what does not exist or cannot work, with the nearest that can.
    """
    if not pairs:
        return ()
    candidates = [choice.settle(pair, matrix) for pair in pairs]
    chosen = choice.pythons(candidates, fixed=fixed_pythons)
    made = [_row(item, python, newest) for item, python in zip(candidates, chosen, strict=True)]
    distinct = {row.spec: row for row in made}.values()
    shared = Counter(row.identifier for row in distinct)
    named = {row.spec for pair, row in zip(pairs, made, strict=True) if pair.python}
    return tuple(
        msgspec.structs.replace(row, identifier=f"{row.identifier}-py{row.python}")
        if not row.ours and (row.spec in named or shared[row.identifier] > 1)
        else row
        for row in made
    )


def complete(table: Mapping[str, Any], matrix: Matrix) -> dict[str, Any]:
    """What a user's row gets for the keys that it leaves out, from the closest row of the matrix.

    `table` has `python` and one of `tensorflow`, `jax` and `torch`. Raises UsageError for a pair
    that is known not to work, unless the table names its packages itself.
    """
    row = _closest(table, matrix)
    found: dict[str, Any] = msgspec.to_builtins(row)
    for key in ("identifier", "lock", "spec"):
        del found[key]
    variants = table.get("packages", row.packages)
    if isinstance(variants, dict) and "gpu" not in variants:
        found["cuda"] = None
        found["size_mb"].pop("gpu", None)
    return found


def _closest(table: Mapping[str, Any], matrix: Matrix) -> Row:
    keras, python = table.get("keras"), table["python"]
    if table.get("tensorflow"):
        version = table["tensorflow"]
        basis = choice.basis_of(version, matrix)
        if keras is None:
            keras = basis.keras
        if "packages" not in table:
            choice.check(version, keras, python, basis)
        return _derived(basis, version, keras, python, name="tensorflow")
    kind = "jax" if table.get("jax") else "torch"
    basis = next(row for row in matrix.rows.values() if getattr(row, kind))
    keras = basis.keras if keras is None else keras
    old, new = getattr(basis, kind), table[kind]
    packages = {
        variant: tuple(
            f"keras=={keras}"
            if name.startswith("keras==")
            else name.replace(f"=={old}", f"=={new}")
            for name in names
        )
        for variant, names in basis.packages.items()
    }
    return msgspec.structs.replace(
        basis, **{kind: new}, keras=keras, python=python, packages=packages
    )


def _row(item: Candidate, python: str, newest: Callable[[str], Mapping[str, str]]) -> Row:
    if item.pair.nightly:
        return _nightly(item, python, newest)
    if item.is_basis and python == item.basis.python:
        return item.basis
    row = _derived(item.basis, item.tensorflow, item.keras, python, name="tensorflow")
    return _named(row, "tensorflow")


def _named(row: Row, package: str) -> Row:
    keras = f"-keras{row.keras}" if row.keras else ""
    spec = f"{package}=={row.tensorflow}" + (f"+keras=={row.keras}" if row.keras else "")
    return msgspec.structs.replace(
        row, identifier=f"tf{row.tensorflow}{keras}", spec=f"{spec}+python=={row.python}"
    )


def _nightly(item: Candidate, python: str, newest: Callable[[str], Mapping[str, str]]) -> Row:
    """A nightly is what the index has today; its row names the versions, so it can be had again."""
    version, keras = item.tensorflow, item.keras
    if not version:
        pins = newest(python)
        version, keras = pins[NIGHTLY], keras or pins[NIGHTLY_KERAS]
    row = _derived(item.basis, version, keras, python, name=NIGHTLY)
    return _named(row, NIGHTLY)


def _derived(basis: Row, version: str, keras: str, python: str, *, name: str) -> Row:
    """The row of another release of the same minor, or of a newer one than the matrix has."""
    small = releases().tensorflow.get(version)
    cpu = "tensorflow-cpu" if name == "tensorflow" and small is not None and small.cpu else name
    kerases = _kerases(version, keras, name)
    cuda = basis.cuda
    if cuda is not None and cuda.from_wheels:
        cuda = msgspec.structs.replace(cuda, base_image=f"python:{python}-slim")
    gpu = (
        f"{framework.replace('tensorflow', name, 1)}=={version}"
        if framework.startswith("tensorflow")
        else f"{framework}=={pinned}"
        for framework, _, pinned in (item.partition("==") for item in basis.packages["gpu"])
        if framework not in ("keras", "tf-keras")
    )
    return msgspec.structs.replace(
        basis,
        tensorflow=version,
        keras=keras,
        python=python,
        packages={"cpu": (f"{cpu}=={version}", *kerases), "gpu": (*gpu, *kerases)},
        constraints=_constraints(basis, version, name),
        apis=_apis(keras, kerases),
        cuda=cuda,
    )


def _kerases(version: str, keras: str, name: str) -> tuple[str, ...]:
    """The Keras packages: the stand-alone one, and tf-keras where it is released apart."""
    found = []
    if keras:
        package = NIGHTLY_KERAS if name == NIGHTLY and Version(keras).is_devrelease else "keras"
        found.append(f"{package}=={keras}")
    if name == "tensorflow" and Version(version) >= choice.KERAS_3:
        minor = Version(version).release[:2]
        legacy = [item for item in releases().tf_keras if Version(item).release[:2] == minor]
        found += [f"tf-keras=={max(legacy, key=Version)}"] if legacy else []
    return tuple(found)


def _constraints(basis: Row, version: str, name: str) -> tuple[str, ...]:
    if name == NIGHTLY:
        return ()
    pins = [
        constraint
        for pin in rules().pins
        if within(version, pin.tensorflow)
        for constraint in pin.constraints
    ]
    cuda = [item for item in basis.constraints if item.startswith("nvidia-")]
    return (*pins, *cuda)


def _apis(keras: str, kerases: Sequence[str]) -> tuple[Api, ...]:
    apis: list[Api] = ["keras", "tf.keras"] if keras else ["tf.keras"]
    if any(item.startswith("tf-keras==") for item in kerases):
        apis.append("tf_keras")
    return tuple(apis)
