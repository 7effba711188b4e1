"""A stand-alone Keras 2.3.1 that computes nothing."""

import stub_keras  # type: ignore[import-not-found]

stub_keras.fail_to_import("STUB_KERAS")
globals().update(stub_keras.make("keras", "2.3.1", "keras.optimizers", lambda: None))
