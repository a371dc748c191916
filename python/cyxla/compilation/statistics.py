# SPDX-License-Identifier: Apache-2.0
"""The result of `compile_program`: an Executable and the statistics of its compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyxla._runtime import Executable, Measured
    from cyxla.program.program import Program

__all__ = ["CompileStatistics", "CompiledPair"]


class CompileStatistics(NamedTuple):
    """The cost of a compilation and the size of its result. None means unknown.

    Attributes:
        seconds: wall-clock time of the compilation in the plugin, or of loading the program from
            the cache.
        program_bytes: bytes of the StableHLO that the plugin compiled.
        code_bytes: bytes of the generated code.
        argument_bytes: bytes of all inputs together.
        output_bytes: bytes of all outputs together.
        temporary_bytes: bytes of scratch memory during one execution.
        flops: floating-point operations of one execution: the plugin's count, else `Program.flops`.
        instructions: instructions of the optimized program in all its computations, those inside
            fusions included. If they are many and the arrays small, calls are slow.
        from_cache: whether the program came from the cache folder.
        second_form_seconds: the part of `seconds` spent on a second compilation with small matrix
            products as kernels (see `exact` of `compile_program`), even if its result was
            discarded. None if there was no second compilation.
    """

    seconds: float
    program_bytes: int
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int
    temporary_bytes: int | None
    flops: float | None
    instructions: int | None
    from_cache: bool = False
    second_form_seconds: float | None = None

    @classmethod
    def of(
        cls, measured: Measured, program: Program, destinations: Sequence[int]
    ) -> CompileStatistics:
        """Return the plugin's measurements without the parameters that cyxla added."""
        # Plugins count the table of a tuple of results as output, and the destinations as
        # arguments.
        argument_bytes = measured.argument_bytes
        if argument_bytes is not None:
            argument_bytes -= sum(program.outputs[output].size_bytes for output in destinations)
        own = {
            "argument_bytes": argument_bytes,
            "output_bytes": sum(output.size_bytes for output in program.outputs),
            "flops": program.flops if measured.flops is None else measured.flops,
        }
        return cls(**{**measured._asdict(), **own})


_REMEDY: Final = (
    "write executable, statistics = cyxla.compile_program(...), or use .executable of the pair"
)


class CompiledPair(NamedTuple):
    """The pair (executable, statistics): a tuple to unpack.

    Attributes:
        executable: the compiled program.
        statistics: the same as `Executable.statistics`.
    """

    executable: Executable
    statistics: CompileStatistics

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"compile_program returns the pair (executable, statistics), which has no {name!r};"
            f" {_REMEDY}",
            name=name,
            obj=self,
        )

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """Raise TypeError: a pair cannot be called."""
        raise TypeError(
            "compile_program returns the pair (executable, statistics), which cannot be called;"
            f" {_REMEDY}, and call executable.run([...])"
        )
