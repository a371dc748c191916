# SPDX-License-Identifier: Apache-2.0
"""Plots a run, for light and dark pages: the time of a call on every task, and how it grows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Entry = Mapping[str, Any]


class Style(NamedTuple):
    """The colours of a light or dark plot."""

    background: str
    text: str
    grid: str
    families: Mapping[str, str]


_STYLES = {
    "light": Style(
        "#ffffff",
        "#1f2328",
        "#d8dee4",
        {
            "cyxla": "#0a5fd0",
            "pjrt": "#1a7f6b",
            "bare": "#8250df",
            "jax": "#bc4c00",
            "other": "#6e7781",
        },
    ),
    "dark": Style(
        "#0d1117",
        "#e6edf3",
        "#30363d",
        {
            "cyxla": "#58a6ff",
            "pjrt": "#3fd0b4",
            "bare": "#bc8cff",
            "jax": "#f0883e",
            "other": "#9198a1",
        },
    ),
}
_FAMILY_OF = {"cyxla": "cyxla", "bare": "bare", "jax": "jax", "cython": "jax"}
# The suffix of rivals that go through PJRT where cyxla would choose the direct route.
_PJRT = "-pjrt"
# Variants of one rival differ in line and marker.
_LINES = {
    "cyxla-execute": ("-", "o"),
    "cyxla-call": ("-", "s"),
    "cyxla-execute-in-place": ("-", "D"),
    "cyxla-execute-copy": (":", "o"),
    "cyxla-execute-moving": ("--", "o"),
    "cyxla-run": ("-.", "^"),
    "bare-kept": ("-", "o"),
    "bare-fresh-views": ("--", "o"),
    "bare-copies": (":", "o"),
    "jax-jit": ("-", "o"),
    "jax-aot": ("--", "o"),
    "jax-device": (":", "o"),
    "hand-c": ("-", "o"),
}


def draw_plots(result: Entry, folder: Path) -> list[str]:
    """Write the plots for which the run has figures; return the file names."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        return ["no plots, as matplotlib is not installed"]
    mpl.use("Agg")
    names = []
    for form, style in _STYLES.items():
        with mpl.rc_context(_settings(style)):
            if result["tasks"]:
                names.append(f"times-{form}.png")
                _draw_times(result, style, folder / names[-1])
            if any(result[part] for part in ("inputs", "sizes", "threads", "latency")):
                names.append(f"growth-{form}.png")
                _draw_growth(result, style, folder / names[-1])
    return names


def _settings(style: Style) -> dict[str, Any]:
    colours = dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor"),
        style.text,
    )
    return {
        **colours,
        "figure.facecolor": style.background,
        "axes.facecolor": style.background,
        "savefig.facecolor": style.background,
        "axes.edgecolor": style.grid,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": style.grid,
        "grid.linewidth": 0.6,
        "font.size": 11,
        "axes.titlesize": 11,
        "legend.frameon": False,
    }


def _colour(style: Style, rival: str) -> str:
    if rival.endswith(_PJRT):
        return style.families["pjrt"]
    return style.families[_FAMILY_OF.get(rival.partition("-")[0], "other")]


def _line_of(rival: str) -> tuple[str, str]:
    return _LINES.get(rival.removesuffix(_PJRT), ("-", "o"))


def _caption(run: Entry) -> str:
    plugin = run["plugin"]["source"]
    return (
        f"{run['cpu']}, {run['cpus']} CPUs; jax {run['versions']['jax']}; plugin {plugin};"
        f" median and quartiles of {run['rounds']} interleaved rounds; logarithmic axes"
    )


def _measured(task: Entry) -> Iterator[Entry]:
    return (rival for rival in task["rivals"] if rival["status"] == "measured")


def _draw_times(result: Entry, style: Style, path: Path) -> None:
    from matplotlib import pyplot

    tasks = result["tasks"]
    labels: dict[str, str] = {}
    for task in tasks:
        for rival in task["rivals"]:
            if any(r["rival"] == rival["rival"] for t in tasks for r in _measured(t)):
                labels.setdefault(rival["rival"], f"{rival['title']} ({rival['caller']})")
    rows = list(labels)
    columns = min(4, len(tasks))
    lines = -(-len(tasks) // columns)
    figure, grid = pyplot.subplots(
        lines,
        columns,
        figsize=(4.2 + 2.9 * columns, lines * (1.2 + 0.25 * len(rows))),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, task in zip(grid.flat, tasks, strict=False):
        for rival in _measured(task):
            row, seconds = rows.index(rival["rival"]), rival["seconds"]
            colour = _colour(style, rival["rival"])
            low, high = seconds["first_quartile"] * 1e6, seconds["third_quartile"] * 1e6
            axes.plot([low, high], [row, row], color=colour, linewidth=2.5, alpha=0.55)
            axes.plot(seconds["median"] * 1e6, row, "o", color=colour, markersize=6)
        _scale_time(axes, "x")
        axes.set_title(task["title"])
        axes.grid(axis="both")
        axes.set_axisbelow(True)
        axes.set_yticks(range(len(rows)), [labels[name] for name in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("time of a call")
    for axes in list(grid.flat)[len(tasks) :]:
        axes.set_visible(False)
    grid[0, 0].invert_yaxis()
    for line in grid:
        for name, label in zip(rows, line[0].get_yticklabels(), strict=True):
            label.set_color(_colour(style, name))
    figure.supxlabel(_caption(result["run"]), fontsize=10)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _scale_time(axes: Any, which: str) -> None:
    """Make an axis logarithmic over whole decades of microseconds, with units at its ticks."""
    getattr(axes, f"set_{which}scale")("log")
    low, high = getattr(axes, f"get_{which}lim")()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    getattr(axes, f"set_{which}lim")(10.0**first, 10.0**last)
    powers = range(first, last + 1, 1 if last - first <= 4 or which == "y" else 2)
    labels = [_time_label(power) for power in powers]
    getattr(axes, f"set_{which}ticks")([10.0**power for power in powers], labels)
    getattr(axes, f"{which}axis").minorticks_off()


def _time_label(power: int) -> str:
    """10^power microseconds in words."""
    unit, offset = next(
        (unit, offset)
        for unit, offset in (("s", 6), ("ms", 3), ("µs", 0), ("ns", -3))
        if power >= offset or unit == "ns"
    )
    return f"{10.0 ** (power - offset):g} {unit}"


def _draw_growth(result: Entry, style: Style, path: Path) -> None:
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(18, 10.5), layout="constrained")
    ((inputs, sizes), (threads, latency)) = grid
    _draw_series(inputs, result["inputs"], style, "number of inputs, arrays of 4 floats")
    _draw_series(sizes, result["sizes"], style, "floats in the input of 2 x + 1")
    _draw_threads(threads, result["threads"], style)
    _draw_latency(latency, result["latency"], style)
    for axes in grid.flat:
        axes.grid(axis="both")
        axes.set_axisbelow(True)
        if axes.has_data():
            axes.legend(fontsize=10, handlelength=3.2, loc="upper left", bbox_to_anchor=(1, 1))
        else:
            axes.set_visible(False)
    figure.supxlabel(_caption(result["run"]), fontsize=10)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _draw_series(axes: Any, tasks: Sequence[Entry], style: Style, label: str) -> None:
    curves: dict[str, tuple[str, list[int], list[float]]] = {}
    for task in tasks:
        for rival in _measured(task):
            title = f"{rival['title']} ({rival['caller']})"
            _, xs, ys = curves.setdefault(rival["rival"], (title, [], []))
            xs.append(int(task["task"].rpartition("-")[2]))
            ys.append(rival["seconds"]["median"] * 1e6)
    for name, (title, xs, ys) in curves.items():
        line, marker = _line_of(name)
        axes.plot(
            xs, ys, line, marker=marker, markersize=4, color=_colour(style, name), label=title
        )
    if curves:
        axes.set_xscale("log")
        _scale_time(axes, "y")
        ticks = sorted({x for _, xs, _ in curves.values() for x in xs})
        axes.set_xticks(
            ticks, [f"{x:,}" if x < 10_000 else f"$10^{len(str(x)) - 1}$" for x in ticks]
        )
        axes.xaxis.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylabel("time of a call")


def _draw_threads(axes: Any, entries: Sequence[Entry], style: Style) -> None:
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for entry in entries:
        key = (entry["task"], entry["rival"], entry["executables"])
        curves.setdefault(key, {})[entry["threads"]] = entry["calls_per_second"][1]
    lines = {"one": "-", "one a thread": "--"}
    markers = dict(zip(dict.fromkeys(key[0] for key in curves), "osD^", strict=False))
    for (task, rival, executables), rates in curves.items():
        axes.plot(
            list(rates),
            list(rates.values()),
            lines[executables],
            marker=markers[task],
            color=_colour(style, rival),
            label=f"{rival}, {task}, executables: {executables}",
        )
    if curves:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ticks = sorted({threads for rates in curves.values() for threads in rates})
        axes.set_xticks(ticks, [str(threads) for threads in ticks])
    axes.set_xlabel("threads")
    axes.set_ylabel("calls a second, all threads together")


def _draw_latency(axes: Any, entries: Sequence[Entry], style: Style) -> None:
    levels = ("p50", "p99", "p99.9", "worst")
    markers = dict(zip(dict.fromkeys(entry["task"] for entry in entries), "osD^", strict=False))
    for entry in entries:
        if not entry["warm_up_calls"]:
            continue
        line = "-." if "call" in entry["rival"] else _line_of(entry["rival"])[0]
        axes.plot(
            levels,
            [entry["nanoseconds"][level] / 1000 for level in levels],
            line,
            marker=markers[entry["task"]],
            color=_colour(style, entry["rival"]),
            label=f"{entry['rival']}, {entry['task']}",
        )
    if entries:
        _scale_time(axes, "y")
        axes.set_xlabel(f"of {entries[0]['calls']:,} calls from C, after a warm-up")
    axes.set_ylabel("time of a single call")
