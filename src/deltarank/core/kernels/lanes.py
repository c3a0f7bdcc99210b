"""Eight numbers as one vector: the innermost steps of histograms, weights and the search in them.

LLVM turns a loop into vector code only when it is long, and a row of eight cells is not. So these
operations are written in vector instructions of LLVM, which fit themselves to any processor.
Each takes rows of C-contiguous arrays of shape (k, LANES), given by array and number; a number
alone stands for a row of equal ones, an array (layers, k, LANES) for as many rows at once.
"""

from copy import copy

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Labels side by side: float32 cells of a row fill half a cache line, float64 cells a whole one.
LANES = 8
# Layers of the labels and of the totals of `pull_apart`; the first are the scores.
POWER, INVERSE, RELEVANT, SLOPE = 1, 2, 3, 4
PRODUCT, MISSED = 0, 1


class _Row:
    """A row of an array, as a vector in memory."""

    def __init__(self, context, builder, array_type, array, index_type, index):
        array = context.make_array(array_type)(context, builder, array)
        index = context.cast(builder, index, index_type, types.intp)
        self.type = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
        self._builder, self._align = builder, array_type.dtype.bitwidth // 8
        self._rows_a_layer = builder.extract_value(array.shape, array_type.ndim - 2)
        self._pointer = builder.gep(builder.bitcast(array.data, self.type.as_pointer()), [index])

    def layer(self, number):
        """Return the same row in another layer of its array."""
        row, layer = copy(self), ir.Constant(self._rows_a_layer.type, number)
        step = self._builder.mul(layer, self._rows_a_layer)
        row._pointer = self._builder.gep(self._pointer, [step])
        return row

    @property
    def zero(self):
        return ir.Constant(self.type, None)

    def load(self):
        return self._builder.load(self._pointer, align=self._align)

    def store(self, vector):
        self._builder.store(vector, self._pointer, align=self._align)


class _Number:
    """A number as a vector."""

    def __init__(self, builder, number):
        self._builder, self._number = builder, number

    def load(self):
        vector = ir.VectorType(self._number.type, LANES)
        first = ir.Constant(ir.IntType(32), 0)
        one = self._builder.insert_element(ir.Constant(vector, ir.Undefined), self._number, first)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return self._builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), everywhere)


def _operation(steps):
    """Return the typing and code of an operation: ``steps(builder, *rows)`` may return a number."""

    def codegen(context, builder, signature, arguments):
        parts = iter(zip(signature.args, arguments, strict=True))
        rows = [
            _Row(context, builder, kind, value, *next(parts))
            if isinstance(kind, types.Array)
            else _Number(builder, value)
            for kind, value in parts
        ]
        result = steps(builder, *rows)
        return context.get_dummy_value() if result is None else result

    def typing(returned, *arguments):
        if any(isinstance(kind, types.Array) and kind.layout != "C" for kind in arguments):
            return None
        return returned(*arguments), codegen

    return typing


@_operation
def _add(builder, target, source):
    target.store(builder.fadd(target.load(), source.load()))


@_operation
def _lower(builder, target, source):
    new, old = source.load(), target.load()
    target.store(builder.select(builder.fcmp_ordered("<", new, old), new, old))


@_operation
def _weigh(builder, target, source, signs, relevant, other):
    is_relevant = builder.icmp_signed(">", signs.load(), signs.zero)
    factor = builder.select(is_relevant, relevant.load(), other.load())
    target.store(builder.fmul(source.load(), factor))


@_operation
def _add_sides(builder, relevant, other, source, signs):
    is_relevant = builder.icmp_signed(">", signs.load(), signs.zero)
    cells = source.load()
    relevant_cells = builder.select(is_relevant, cells, source.zero)
    rest = builder.select(is_relevant, source.zero, cells)
    relevant.store(builder.fadd(relevant.load(), relevant_cells))
    other.store(builder.fadd(other.load(), rest))


@_operation
def _keep_relevant(builder, target, source, signs):
    is_relevant = builder.icmp_signed(">", signs.load(), signs.zero)
    target.store(builder.select(is_relevant, source.load(), source.zero))


@_operation
def _sum(builder, source):
    name = f"llvm.vector.reduce.fadd.v{LANES}f{32 if source.type.element == ir.FloatType() else 64}"
    kind = ir.FunctionType(source.type.element, [source.type.element, source.type])
    reduce = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    nothing = ir.Constant(source.type.element, 0.0)
    return builder.call(reduce, [nothing, source.load()], fastmath=("reassoc",))


@_operation
def _pull_apart(builder, upper, lower, totals):
    sides = builder.fsub(upper.layer(RELEVANT).load(), lower.layer(RELEVANT).load())
    upper_power, lower_power = upper.layer(POWER).load(), lower.layer(POWER).load()
    both, zero = builder.fadd(upper_power, lower_power), upper.zero
    wrong = builder.select(builder.fcmp_ordered(">", sides, zero), lower_power, upper_power)
    pull = builder.fdiv(builder.fmul(sides, wrong), both)
    upper.layer(SLOPE).store(builder.fsub(upper.layer(SLOPE).load(), pull))
    lower.layer(SLOPE).store(builder.fadd(lower.layer(SLOPE).load(), pull))
    inverse, inverse_of_other = upper.layer(INVERSE).load(), lower.layer(INVERSE).load()
    is_less = builder.fcmp_ordered("<", inverse, inverse_of_other)
    factor = builder.fmul(both, builder.select(is_less, inverse, inverse_of_other))
    product, missed = totals.layer(PRODUCT), totals.layer(MISSED)
    no_pair = builder.fcmp_ordered("==", sides, zero)
    multiplied = builder.fmul(product.load(), factor)
    product.store(builder.select(no_pair, product.load(), multiplied))
    short = builder.fmul(sides, builder.fsub(lower.load(), upper.load()))
    is_short = builder.fcmp_ordered(">", short, zero)
    missed.store(builder.fadd(missed.load(), builder.select(is_short, short, zero)))


@intrinsic
def add_lanes(typing_context, target, row, source, line):
    """Add ``source[line]`` to ``target[row]``."""
    return _add(types.void, target, row, source, line)


@intrinsic
def min_lanes(typing_context, target, row, source, line):
    """Lower ``target[row]`` to ``source[line]`` wherever that is less."""
    return _lower(types.void, target, row, source, line)


@intrinsic
def weigh_lanes(typing_context, target, row, source, line, signs, k, relevant, i, other, j):
    """Set ``target[row]`` to ``source[line]`` times ``relevant[i]`` or ``other[j]``, by signs."""
    return _weigh(types.void, target, row, source, line, signs, k, relevant, i, other, j)


@intrinsic
def scale_lanes(typing_context, target, row, source, line, signs, k, relevant, other):
    """Set ``target[row]`` to ``source[line]`` times one of two numbers, by signs."""
    return _weigh(types.void, target, row, source, line, signs, k, relevant, other)


@intrinsic
def add_sides(typing_context, relevant, i, other, j, source, row, signs, line):
    """Add ``source[row]`` to ``relevant[i]`` where signs are positive, else to ``other[j]``."""
    return _add_sides(types.void, relevant, i, other, j, source, row, signs, line)


@intrinsic
def keep_relevant(typing_context, target, row, source, line, signs, i):
    """Set ``target[row]`` to ``source[line]`` where signs are positive, else to 0."""
    return _keep_relevant(types.void, target, row, source, line, signs, i)


@intrinsic
def sum_lanes(typing_context, source, row):
    """Return the sum of ``source[row]``."""
    return _sum(source.dtype, source, row)


@intrinsic
def pull_apart(typing_context, labels, row, others, line, totals, k):
    """Add the logistic loss of the pairs of two labels: see `logistic_tile`."""
    return _pull_apart(types.void, labels, row, others, line, totals, k)
