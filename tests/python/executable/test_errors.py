# SPDX-License-Identifier: Apache-2.0
"""The exceptions form one hierarchy, and derive from Python's exceptions too."""

from __future__ import annotations

import pickle

import pytest

import cyxla
from cyxla import errors

_WARNINGS = {"LargeConstantsWarning", "NarrowingWarning"}


@pytest.mark.parametrize("name", sorted({*errors.__all__} - _WARNINGS))
def test_every_error_is_a_public_error_of_cyxla(name: str) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.Error)
    assert issubclass(error, RuntimeError)
    assert getattr(cyxla, name) is error
    assert error.__doc__


def test_the_list_is_complete() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined == set(errors.__all__)


def test_errors_are_what_callers_catch() -> None:
    assert issubclass(errors.ArgumentError, ValueError)
    assert issubclass(errors.AbiError, ImportError)


def test_errors_survive_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(errors.PluginError("no plugin at '/x'")))
    assert type(error) is errors.PluginError
    assert str(error) == "no plugin at '/x'"
