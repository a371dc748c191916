# SPDX-License-Identifier: Apache-2.0
"""Attributes of an Executable, and how it answers wrong uses."""

from __future__ import annotations

from typing import Any, cast

import pytest

import cyxla
from cyxla import _runtime
from support.arrays import build


def test_statistics_are_kept_and_read_only() -> None:
    executable = build(lambda x: 2 * x, ((3,), "f8"))
    statistics = cyxla.CompileStatistics(1.5, 2, None, None, 24, None, None, None)
    _runtime.set_statistics(executable, statistics)
    assert executable.statistics is statistics
    with pytest.raises(AttributeError):
        cast("Any", executable).statistics = None
    with pytest.raises(TypeError, match="Executable"):
        _runtime.set_statistics(cast("Any", None), statistics)
