# SPDX-License-Identifier: Apache-2.0
"""The Markdown report of a run: tables of times, ratios, goals, growth and latency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]


def markdown(result: Entry) -> str:
    """The whole report of a run, from the content of its JSON file."""
    parts = [_header(result["run"])]
    if result["tasks"]:
        parts += [_times(result["tasks"]), _ratios(result["tasks"])]
    if result["goals"]:
        parts.append(_goals(result["goals"]))
    for key, title in (("inputs", "Number of inputs"), ("sizes", "Size of the input")):
        if result[key]:
            parts.append(_section(f"{title}: microseconds a call", *_time_table(result[key])))
    if result["threads"]:
        parts.append(_threads(result["threads"]))
    if result["latency"]:
        parts.append(_latency(result["latency"]))
    if result.get("arguments"):
        parts.append(_arguments(result["arguments"]))
    if result.get("lowering"):
        parts.append(_lowering(result["lowering"]))
    if result.get("products"):
        parts.append(_products(result["products"]))
    parts.append(_not_measured(result["tasks"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def microseconds(seconds: float) -> str:
    """A time with three significant digits, in microseconds."""
    value = seconds * 1e6
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _section(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return f"### {title}\n\n{table(header, rows)}"


def _header(run: Entry) -> str:
    versions = ", ".join(
        f"{name} {version}" for name, version in run["versions"].items() if version
    )
    plugin, git = run["plugin"], run["git"]
    changed = " with changes" if git["changed"] else ""
    dispatch = "asynchronous" if run["jax_asynchronous"] else "synchronous"
    return "\n".join(
        [
            "## Benchmark",
            "",
            f"{run['cpu']}, {run['cpus']} CPUs, {run['system']}, load {run['load'][0]} before;"
            f" Python {run['python']}; {run['compiler']}.",
            f"Plugin: {plugin['source']}, PJRT API"
            f" {'.'.join(map(str, plugin['api_version']))}. {versions}. JAX dispatches"
            f" {dispatch}. Revision {git['revision'][:12]}{changed}, {run['time']}.",
            "",
            f"Median of {run['rounds']} interleaved rounds; every result was checked against JAX"
            " before it was timed.",
        ]
    )


def _rivals_of(tasks: Sequence[Entry]) -> list[Entry]:
    seen: dict[str, Entry] = {}
    for task in tasks:
        for rival in task["rivals"]:
            if rival["status"] == "measured":
                seen.setdefault(rival["rival"], rival)
    order = [rival["rival"] for rival in max(tasks, key=lambda t: len(t["rivals"]))["rivals"]]
    return sorted(seen.values(), key=lambda rival: order.index(rival["rival"]))


def _cell(task: Entry, name: str, text: Any) -> str:
    for rival in task["rivals"]:
        if rival["rival"] == name and rival["status"] == "measured":
            return str(text(rival))
    return ""


def _label(rival: Entry) -> str:
    return f"{rival['title']} ({rival['caller']})"


def _time_table(tasks: Sequence[Entry]) -> tuple[list[str], list[list[str]]]:
    def text(rival: Entry) -> str:
        seconds = rival["seconds"]
        low, high = seconds["first_quartile"], seconds["third_quartile"]
        return f"{microseconds(seconds['median'])} ({microseconds(low)}-{microseconds(high)})"

    rows = [
        [_label(rival), *(_cell(task, rival["rival"], text) for task in tasks)]
        for rival in _rivals_of(tasks)
    ]
    return ["", *(task["task"] for task in tasks)], rows


def _times(tasks: Sequence[Entry]) -> str:
    return _section("Microseconds a call: median (quartiles)", *_time_table(tasks))


def _ratios(tasks: Sequence[Entry]) -> str:
    def text(rival: Entry) -> str:
        ratio = rival["ratio_to"].get("jax-jit")
        return "" if ratio is None else f"{ratio[1]:.3g}"

    rows = [
        [_label(rival), *(_cell(task, rival["rival"], text) for task in tasks)]
        for rival in _rivals_of(tasks)
    ]
    header = ["", *(task["task"] for task in tasks)]
    return _section(
        "Time relative to jax.jit from NumPy to NumPy: median of paired ratios", header, rows
    )


def _goals(goals: Sequence[Entry]) -> str:
    rows = [
        [
            f"{goal['rival']} / {goal['reference']}",
            goal["task"],
            f"{goal['limit']:.3g}",
            "{1:.3g} ({0:.3g}-{2:.3g})".format(*goal["ratio"]),
            "met" if goal["met"] else "missed",
        ]
        for goal in goals
    ]
    return _section("Goals", ["ratio", "task", "at most", "measured", ""], rows)


def _threads(entries: Sequence[Entry]) -> str:
    rows = [
        [
            f"{entry['rival']}, {entry['task']}, {entry['executables']}",
            str(entry["threads"]),
            f"{entry['calls_per_second'][1]:,.0f}",
            f"{entry['calls_per_second'][1] / _single_thread(entries, entry):.2f}",
        ]
        for entry in entries
    ]
    header = ["rival, task, executables", "threads", "calls a second", "relative to one thread"]
    return _section("Threads", header, rows)


def _single_thread(entries: Sequence[Entry], like: Entry) -> float:
    keys = ("task", "rival", "executables")
    same = [e for e in entries if all(e[key] == like[key] for key in keys) and e["threads"] == 1]
    return float(same[0]["calls_per_second"][1])


def _latency(entries: Sequence[Entry]) -> str:
    levels = ("first", "p50", "p99", "p99.9", "worst")
    rows = [
        [
            f"{entry['rival']}, {entry['task']}",
            str(entry["warm_up_calls"]),
            *(microseconds(entry["nanoseconds"][level] * 1e-9) for level in levels),
            f"{entry['memory_growth_bytes'] / 1024:.0f}",
        ]
        for entry in entries
    ]
    header = ["rival, task", "calls before", *levels, "memory grown, KiB"]
    calls = entries[0]["calls"]
    return _section(f"Single calls from C, microseconds, of {calls:,} calls", header, rows)


def _arguments(entries: Sequence[Entry]) -> str:
    rows = [
        [
            f"{entry['kind']}, {entry['program']}",
            microseconds(entry["seconds"]["minimum"]),
            f"{entry['ratio']:.2f}",
            f"{entry['extra_nanoseconds']:.0f}",
            "" if entry["limit_nanoseconds"] is None else f"{entry['limit_nanoseconds']:.0f}",
            "" if entry["limit_nanoseconds"] is None else "met" if entry["met"] else "missed",
        ]
        for entry in entries
    ]
    header = ["argument of run", "microseconds", "ratio", "extra, ns", "at most, ns", ""]
    return _section(
        "Kinds of argument, beside an aligned array: minima of all rounds", header, rows
    )


def _not_measured(tasks: Sequence[Entry]) -> str:
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for task in tasks:
        for rival in task["rivals"]:
            if rival["status"] != "measured":
                key = (rival["rival"], rival["status"], rival["reason"])
                reasons.setdefault(key, []).append(task["task"])
    if not reasons:
        return ""
    lines = [
        f"- {name}, {status} ({', '.join(of)}): {reason}"
        for (name, status, reason), of in reasons.items()
    ]
    return "\n".join(["### Not measured", "", *lines])


def _lowering(entries: Sequence[Entry]) -> str:
    header = ["program", "size", "JAX, ms", "cyxla, ms", "ratio", "limit"]
    rows = [
        [
            entry["program"],
            str(entry["size"]),
            f"{entry['jax_seconds'] * 1e3:.1f}",
            f"{entry['seconds'] * 1e3:.1f}",
            f"{entry['ratio']:.2f}",
            "kept" if entry["met"] else "**missed**",
        ]
        for entry in entries
    ]
    return _section("Lowering: processor time beside JAX's own", header, rows)


def _products(entries: Sequence[Entry]) -> str:
    header = ["products", "`exact=True`", "default", "ratio", "second form", "route", "limit"]
    rows = [
        [
            f"{entry['products']} of {entry['size']} x {entry['size']}",
            f"{entry['exact_seconds']:.2f}",
            f"{entry['default_seconds']:.2f}",
            f"{entry['default_seconds'] / entry['exact_seconds']:.2f}",
            "no" if entry["second_form_seconds"] is None else "yes",
            entry["route"],
            "kept" if entry["met"] else "**missed**",
        ]
        for entry in entries
    ]
    return _section("Small matrix products: processor seconds of a compilation", header, rows)
