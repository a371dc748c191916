# SPDX-License-Identifier: Apache-2.0
"""The programs on which every JAX and every plugin must agree."""

from __future__ import annotations

from support.programs.table import select

PROGRAMS = select("matrix")
# Those of every test run: each in one dtype.
BRIEF = select("brief")
