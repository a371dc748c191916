# SPDX-License-Identifier: Apache-2.0
"""Integrates the motion of a pendulum, a JAX function, in C, C++ and Cython.

meson setup build/pendulum examples/pendulum && meson compile -C build/pendulum
PYTHONPATH=build/pendulum python examples/pendulum/pendulum.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import pendulum_c
import pendulum_cpp
import pendulum_cython

import cyxla as cx


def rate(state):
    """Return the rate of change of the pendulum's angle and speed."""
    angle, speed = state
    return jnp.array([speed, -jnp.sin(angle)])


def energy(state):
    """Return the energy, which stays constant without friction."""
    angle, speed = state
    return speed**2 / 2 - np.cos(angle)


executable, _ = cx.compile_program(cx.lower(rate, [jax.ShapeDtypeStruct((2,), jnp.float64)]))
for module in (pendulum_c, pendulum_cpp, pendulum_cython):
    state = np.array([1.0, 0.0])
    before = energy(state)
    module.integrate(executable, state, 1e-4, 50_000)
    print(f"{module.__name__}: state {state} after 5 s, energy {energy(state) - before:+.0e}")
    assert abs(energy(state) - before) < 1e-3
