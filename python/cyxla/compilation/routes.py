# SPDX-License-Identifier: Apache-2.0
"""The routes of an execution, and which one the caller and the environment request."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from cyxla.errors import ArgumentError, UnsupportedError

__all__ = ["DIRECT_ENVIRONMENT_VARIABLE", "RouteRequest", "requested_route"]

DIRECT_ENVIRONMENT_VARIABLE = "CYXLA_DIRECT"
"""The environment variable that turns the direct route off ("0") or its fork ("no-fork")."""

_ROUTES: Final = ("auto", "pjrt", "direct")
_OFF: Final = "0"
_NO_FORK: Final = "no-fork"


class RouteRequest(NamedTuple):
    """A requested route.

    Attributes:
        route: "auto" (direct if possible), "pjrt" or "direct" (direct or an error).
        reason: why the route is "pjrt"; empty for the other routes.
        may_fork: whether a program may be tested in a child process.
    """

    route: str
    reason: str = ""
    may_fork: bool = True


def requested_route(route: object, outputs_in_place: bool) -> RouteRequest:
    """Return the route that the caller and the environment request.

    Raises:
        ArgumentError: `route` or the environment variable is invalid, or `route` contradicts
            `outputs_in_place`.
        UnsupportedError: `route` is "direct", and the environment variable turns it off.
    """
    if route not in _ROUTES or not isinstance(route, str):
        raise ArgumentError(f"route must be 'auto', 'pjrt' or 'direct', got {route!r}")
    if route == "pjrt":
        return RouteRequest("pjrt", "route='pjrt' was asked for")
    if _setting() == _OFF:
        reason = f"the environment variable {DIRECT_ENVIRONMENT_VARIABLE} is {_OFF}"
        if route == "direct":
            raise UnsupportedError(
                f"route='direct' was asked for, but {reason}; unset it, or leave route to 'auto'"
            )
        return RouteRequest("pjrt", reason)
    if outputs_in_place:
        if route == "direct":
            raise ArgumentError(
                "outputs_in_place=True is not for route='direct': direct calls write into the"
                " caller's memory anyway; leave it out"
            )
        return RouteRequest("pjrt", "outputs_in_place=True has the plugin write them in place")
    return RouteRequest(route, may_fork=_setting() != _NO_FORK)


def _setting() -> str:
    setting = os.environ.get(DIRECT_ENVIRONMENT_VARIABLE) or "1"
    if setting not in {_OFF, "1", _NO_FORK}:
        raise ArgumentError(
            f"the environment variable {DIRECT_ENVIRONMENT_VARIABLE} is {setting!r}; it takes"
            f" {_OFF}, 1 or {_NO_FORK}"
        )
    return setting
