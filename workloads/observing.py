"""Which path ran: how a step is executed, by which of Keras's loops, and what took the input."""

import sys
import threading

# Keras's own ways through the data, in whichever module a version has them.
_LOOPS = frozenset(
    (
        "evaluate",
        "evaluate_generator",
        "fit",
        "fit_generator",
        "fit_loop",
        "make_predict_function",
        "make_test_function",
        "make_train_function",
        "model_iteration",
        "predict",
        "predict_generator",
        "predict_loop",
        "predict_on_batch",
        "run_one_epoch",
        "test_loop",
        "test_on_batch",
        "train_on_batch",
    )
)
# Modules in which a layer's `__call__` stands.
_LAYERS = ("base_layer", "base_layer_v1", "layer", "topology")
_FUNCTIONS = frozenset(("_call_flat", "call_flat", "_call_impl", "call_preflattened"))
_SESSION = "client.session"


class Observer:
    """Watches one call from inside: `with Observer(backend, model) as seen: call()`.

    Python tells of every function that is entered, in this thread and in those that the call
    starts. A layer of the model that is called while nothing is being made into a graph says that
    the model runs op by op; a function that is run, or a session, says that it does not. Nothing is
    put in the place of anything, so what is watched takes the way that it always takes. Without a
    `model`, every model that is called is watched: the call makes its own.
    """

    def __init__(self, backend, model):
        self._backend = backend
        self._models = backend.keras.models.Model if model is None else ()
        self._watched = {id(layer) for layer in [model, *getattr(model, "layers", ())]}
        self._loops = []
        self._adapters = []
        self._ran = set()
        self._outermost = None
        self.calls = {"eager": 0, "function_graph": 0, "plain_graph": 0}

    def __enter__(self):
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def executed_as(self) -> str:
        """`op by op`, `function` or `session`: what was seen, else what the mode makes of it."""
        if self.calls["eager"]:
            return "op by op"
        for seen in ("session", "function"):
            if seen in self._ran:
                return seen
        return "function" if self._backend.executes_eagerly else "session"

    @property
    def training_loop(self):
        """The loops that were entered, from the user's call inwards.

        For a call that enters none of Keras's, such as a model that is called, it is the first
        layer, function or session that was; None when nothing is known.
        """
        return " > ".join(self._loops) or self._outermost

    @property
    def data_adapter(self):
        """The adapters that were made; None in versions that have none."""
        return ", ".join(self._adapters) or None

    def tell(self, result):
        """Leave in a result what was seen."""
        result["executed_as"] = self.executed_as
        result["training_loop"] = self.training_loop
        result["data_adapter"] = self.data_adapter
        result["diagnostics"] = {
            "calls": dict(self.calls, outer_eager=self._backend.executes_eagerly)
        }

    def _profile(self, frame, event, _):
        if event != "call":
            return
        name = frame.f_code.co_name
        module = frame.f_globals.get("__name__") or ""
        if name in _LOOPS:
            if ".engine.training" in module or module.endswith((".trainer", ".engine.sequential")):
                _note(self._loops, _loop(module, frame, name))
        elif name == "__call__":
            self._note_call(module, frame)
        elif name in _FUNCTIONS and ".eager." in module:
            self._ran.add("function")
        elif "data_adapter" in module:
            self._note_adapter(frame, name)
        elif module.endswith(_SESSION) and name in ("run", "_run"):
            self._note_run("session", module, "run")

    def _note_call(self, module, frame):
        last = module.rpartition(".")[2]
        if module.endswith(_SESSION):
            self._note_run("session", module, "run")
        elif last in ("def_function", "polymorphic_function"):
            self._outermost = self._outermost or f"{last}.__call__"
        elif last in _LAYERS and self._is_watched(frame.f_locals.get("self")):
            self._outermost = self._outermost or f"{last}.__call__"
            self.calls[self._backend.traced(_argument(frame.f_locals))] += 1

    def _is_watched(self, layer) -> bool:
        return id(layer) in self._watched or isinstance(layer, self._models)

    def _note_run(self, kind, module, name):
        self._ran.add(kind)
        self._outermost = self._outermost or f"{_last(module)}.{name}"

    def _note_adapter(self, frame, name):
        made = type(frame.f_locals.get("self")).__name__
        if name == "__init__" and made.endswith("Adapter"):  # the module has other classes too
            _note(self._adapters, made)
        elif name == "single_batch_iterator":
            _note(self._adapters, name)


def _loop(module, frame, name) -> str:
    """`training_v2.Loop.fit`: the class only where it is one of the loops between which is chosen.

    A generator's function has it in a class of a user's own, too.
    """
    owner = type(frame.f_locals.get("self")).__name__
    chosen = f"{owner}." if owner.endswith("Loop") else ""
    return f"{_last(module)}.{chosen}{name}"


def _argument(local):
    """What a layer is called with: the first of its arguments, or of what these hold."""
    found = local.get("inputs", local.get("args"))
    while isinstance(found, (list, tuple, dict)) and found:
        found = next(iter(found.values() if isinstance(found, dict) else found))
    return found


def _last(module) -> str:
    """The telling end of a module's name: `training_v1`; Keras 3 has a `trainer` a framework."""
    parts = module.split(".")
    return ".".join(parts[-2:] if parts[-1] == "trainer" else parts[-1:])


def _note(seen, name):
    if name not in seen:
        seen.append(name)
