"""Eight numbers as one vector: the innermost steps of histograms and of the search in them.

LLVM turns a loop into vector code only when it is long, and a row of eight cells is not. So these
two operations are written in vector instructions of LLVM, which fit themselves to any processor.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Labels side by side: float32 cells of a row fill half a cache line, float64 cells a whole one.
LANES = 8


def _row_operation(combine):
    """Return the typing and code of ``target[row] = combine(target[row], source[line])``."""

    def pointer(context, builder, array_type, array, index_type, index):
        data = context.make_array(array_type)(context, builder, array).data
        index = context.cast(builder, index, index_type, types.intp)
        cell = builder.gep(data, [builder.mul(index, context.get_constant(types.intp, LANES))])
        lanes = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
        return builder.bitcast(cell, lanes.as_pointer())

    def codegen(context, builder, signature, arguments):
        target, row, source, line = zip(signature.args, arguments, strict=True)
        to = pointer(context, builder, *target, *row)
        other = pointer(context, builder, *source, *line)
        align = signature.args[0].dtype.bitwidth // 8
        found = combine(builder, builder.load(to, align=align), builder.load(other, align=align))
        builder.store(found, to, align=align)
        return context.get_dummy_value()

    def typing(typing_context, target, row, source, line):
        if target.dtype != source.dtype or target.layout != "C" or source.layout != "C":
            return None
        return types.void(target, row, source, line), codegen

    return typing


@intrinsic
def add_lanes(typing_context, target, row, source, line):
    """Add ``source[line]`` to ``target[row]``; both C-contiguous, of shape (k, LANES)."""
    add = _row_operation(lambda builder, a, b: builder.fadd(a, b))
    return add(typing_context, target, row, source, line)


@intrinsic
def min_lanes(typing_context, target, row, source, line):
    """Lower ``target[row]`` to ``source[line]`` wherever that is less."""
    least = _row_operation(
        lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a)
    )
    return least(typing_context, target, row, source, line)
