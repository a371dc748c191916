# SPDX-License-Identifier: Apache-2.0
"""pypjrt, a PJRT client in pure Python: copies in, executes, copies out."""

from __future__ import annotations

import functools
from typing import Any

import cyxla
import numpy as np

from case import Case
from loops import PythonLoop
from rivals import Rival


@functools.cache
def _client() -> tuple[Any, Any, Any]:
    import pypjrt

    info = cyxla.runtime_info()
    client = pypjrt.Client(
        pypjrt.Plugin(str(info.plugin.path)), options=dict(info.plugin.create_options)
    )
    devices = client.devices()  # a context manager, which is kept open
    return client, devices.__enter__()[0], devices


def _run(case: Case) -> PythonLoop:
    client, device, _ = _client()
    executable = client.compile(case.program.stablehlo)
    from_host = client.buffer_from_host
    inputs = [
        (array, int(described.element_type), list(described.shape))
        for array, described in zip(case.inputs, case.program.inputs, strict=True)
    ]
    outputs = case.new_outputs()
    # to_host() needs writable bytes; a view of them costs nothing in the loop.
    destinations = [output.reshape(-1).view(np.uint8) for output in outputs]

    def call() -> list[Any]:
        results = executable(*[from_host(*described, device) for described in inputs])
        for result, destination in zip(results, destinations, strict=True):
            result.to_host(destination)
        return outputs

    return PythonLoop(call)


RIVALS = (Rival("pypjrt", "pypjrt", "Python", _run),)
