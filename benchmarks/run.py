# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark: checks every rival against JAX, times them in turn, writes the results.

    python benchmarks/run.py                         # everything, at most ten minutes on two CPUs
    python benchmarks/run.py --quick                 # a smoke test of about a minute
    python benchmarks/run.py --only 'hs71/cyxla-*'   # some tasks and rivals, by shell pattern
    python benchmarks/run.py --part latency          # one part
    python benchmarks/run.py --rival mine.py         # one more rival, from a file with RIVALS

The results, result.json, table.md and the plots, go to benchmarks/results/latest. The exit status
is 1 if a rival gave wrong results or failed; a rival whose package is missing does not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

PARTS = ("times", "inputs", "sizes", "threads", "latency", "arguments", "lowering", "products")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TASK/RIVAL",
        help="shell patterns; 'hs71' is every rival on a task, '/jax-jit' one rival on every task",
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="one part, repeatable")
    parser.add_argument("--rival", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print tasks and rivals")
    parser.add_argument("--rounds", type=int, help="rounds of the tasks")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the rivals")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).resolve().parent / "results" / "latest"
    )
    parser.add_argument(
        "--jax-asynchronous",
        action="store_true",
        help="leave JAX's dispatch asynchronous; synchronous, the default here, is faster for it",
    )
    return parser.parse_args()


def main() -> int:
    """Run the benchmark; return the exit status."""
    arguments = parse_arguments()
    # JAX reads both when it makes its client, so the other modules are imported later.
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", arguments.jax_asynchronous)

    import suite
    from plots import draw_plots
    from report import markdown
    from results_file import write_result

    if arguments.list:
        print(suite.listing(arguments.rival))
        return 0
    result, faults = suite.run_suite(
        quick=arguments.quick,
        parts=arguments.part or PARTS,
        is_chosen=lambda task, rival: _is_chosen(arguments.only, task, rival),
        extra_rivals=arguments.rival,
        rounds=arguments.rounds,
        shuffler=random.Random(arguments.seed),
    )
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_result(arguments.output / "result.json", result)
    text = markdown(result)
    (arguments.output / "table.md").write_text(text)
    written = draw_plots(result, arguments.output)
    print(text)
    print(f"written to {arguments.output}: result.json, table.md, {', '.join(written)}")
    _print_faults(faults)
    return 1 if faults else 0


def _is_chosen(patterns: Sequence[str], task: str, rival: str) -> bool:
    if not patterns:
        return True
    for pattern in patterns:
        task_pattern, _, rival_pattern = pattern.partition("/")
        if fnmatch.fnmatchcase(task, task_pattern or "*") and fnmatch.fnmatchcase(
            rival, rival_pattern or "*"
        ):
            return True
    return False


def _print_faults(faults: Sequence[dict[str, Any]]) -> None:
    for fault in faults:
        print(
            f"error: {fault['task']}/{fault['rival']} is {fault['status']}: {fault['reason']}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
