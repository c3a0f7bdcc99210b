"""Eight numbers as one vector: the innermost step of every histogram.

LLVM turns a loop into vector code only when it is long, and a row of eight cells is not. So this
one addition is written in vector instructions of LLVM, which fit themselves to any processor.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Labels side by side: float32 cells of a row fill half a cache line, float64 cells a whole one.
LANES = 8


@intrinsic
def add_lanes(typing_context, target, row, source, line):
    """Add ``source[line]`` to ``target[row]``; both C-contiguous, of shape (k, LANES)."""

    def pointer(context, builder, array_type, array, index_type, index):
        data = context.make_array(array_type)(context, builder, array).data
        index = context.cast(builder, index, index_type, types.intp)
        cell = builder.gep(data, [builder.mul(index, context.get_constant(types.intp, LANES))])
        lanes = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
        return builder.bitcast(cell, lanes.as_pointer())

    def codegen(context, builder, signature, arguments):
        target, row, source, line = zip(signature.args, arguments, strict=True)
        to = pointer(context, builder, *target, *row)
        addend = pointer(context, builder, *source, *line)
        align = signature.args[0].dtype.bitwidth // 8
        total = builder.fadd(builder.load(to, align=align), builder.load(addend, align=align))
        builder.store(total, to, align=align)
        return context.get_dummy_value()

    if target.dtype != source.dtype or target.layout != "C" or source.layout != "C":
        return None
    return types.void(target, row, source, line), codegen
