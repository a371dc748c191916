# SPDX-License-Identifier: Apache-2.0
"""Print the folder of pjrt_c_api.h in the installed package xla-cpu-pjrt, or nothing."""

import importlib.util
from pathlib import Path

# xla_plugins is a namespace package: looking inside it imports no plugin.
spec = importlib.util.find_spec("xla_plugins")
for root in (spec.submodule_search_locations or ()) if spec else ():
    folder = Path(root) / "xla_cpu_pjrt" / "include"
    if (folder / "pjrt_c_api.h").is_file():
        print(folder)
        break
