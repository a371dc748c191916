# SPDX-License-Identifier: Apache-2.0
"""Builds C libraries from programs."""
