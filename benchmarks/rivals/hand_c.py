# SPDX-License-Identifier: Apache-2.0
"""Hand-written C, derivatives included: hand_c.c."""

from __future__ import annotations

import ctypes

from case import Case
from loops import NativeLoop, pointers
from native_build import ROOT, address_of, load_library
from rivals import NotApplicableError, Rival

_FUNCTIONS = {
    "rosenbrock-2": "hand_rosenbrock",
    "rosenbrock-100": "hand_rosenbrock",
    "hs71": "hand_hs71",
    "robertson": "hand_robertson",
    "mlp": "hand_perceptron",
    "tanh-64": "hand_tanh_64",
    "sin-3": "hand_twice_sine",
    "elementwise-1e7": "hand_scale_and_shift",
}


def _hand(case: Case) -> NativeLoop:
    name = "elementwise-1e7" if case.task.name.startswith("size-") else case.task.name
    if name not in _FUNCTIONS:
        raise NotApplicableError("not written by hand")
    function = getattr(load_library(ROOT / "rivals" / "hand_c.c"), _FUNCTIONS[name])
    outputs = case.new_outputs()
    addresses, size = pointers([*case.inputs, *outputs]), ctypes.c_size_t(case.inputs[0].size)
    state = (ctypes.c_void_p * 2)(ctypes.addressof(addresses), ctypes.addressof(size))
    return NativeLoop(
        address_of(function), ctypes.addressof(state), outputs, keep=(state, addresses, size)
    )


RIVALS = (Rival("hand-c", "C by hand, -O3 -march=native", "C", _hand),)
