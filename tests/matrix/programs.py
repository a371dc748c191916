# SPDX-License-Identifier: Apache-2.0
"""The programs that every JAX and every plugin must agree on: those of the table with the tag."""

from __future__ import annotations

from support.programs.table import select

PROGRAMS = select("matrix")
# What every run of the tests can afford: each in one dtype.
BRIEF = select("brief")
