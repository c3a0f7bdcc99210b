"""Sums over the words of one row for many problems at once, one problem per lane of a vector.

Labels share their rows, and so do siblings in a tree. With their coefficients side by side, feature
after feature, a word of a row costs one vector operation for all of them in place of one number
from anywhere in memory for each. The loops are written in vector instructions of LLVM: it keeps the
sums in registers, which no loop over an array of sums would.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Problems that are solved side by side: float32 coefficients of a feature fill two cache lines.
LANES = 32
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_FUSED = ("contract",)


def _everywhere(builder, number):
    """Return a number as a vector of equal ones."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(one, undefined, first)


class _Words:
    """The words of one row: for each the place of its coefficients, and its value as a vector."""

    def __init__(self, context, builder, signature, arguments):
        kinds = dict(enumerate(signature.args))
        self._builder = builder
        coef, self._indices, self._values, lanes = (
            context.make_array(kinds[place])(context, builder, arguments[place]).data
            for place in (0, 1, 2, 5)
        )
        self._coef = builder.bitcast(coef, _VECTOR.as_pointer())
        self.lanes = builder.bitcast(lanes, _VECTOR.as_pointer())
        self.first, self.end = (
            context.cast(builder, arguments[place], kinds[place], types.intp) for place in (3, 4)
        )

    def each(self, step):
        """Build a loop over all words."""
        builder = self._builder
        with cgutils.for_range(builder, self.end, start=self.first) as loop:
            word = builder.load(builder.gep(self._indices, [loop.index]))
            place = builder.gep(self._coef, [builder.zext(word, ir.IntType(64))])
            value = builder.load(builder.gep(self._values, [loop.index]))
            step(place, _everywhere(builder, value))


def _operation(steps):
    """Return the typing and code of a loop over the words of one row."""

    def codegen(context, builder, signature, arguments):
        steps(builder, _Words(context, builder, signature, arguments))
        return context.get_dummy_value()

    def typing(coef, indices, values, first, end, lanes):
        wanted = (coef, types.float32), (indices, types.int32), (values, types.float32)
        if any(
            array.dtype != kind or array.layout != "C"
            for array, kind in (*wanted, (lanes, types.float32))
        ):
            raise TypeError("rows of lanes must be C-contiguous float32, and words int32")
        return types.void(coef, indices, values, first, end, lanes), codegen

    return typing


def _fused(builder, a, b, c):
    """Return a b + c."""
    product = builder.fmul(a, b, flags=_FUSED)
    return builder.fadd(product, c, flags=_FUSED)


def _add_scores(builder, words):
    total = cgutils.alloca_once(builder, _VECTOR)
    builder.store(builder.load(words.lanes, align=4), total)

    def step(place, value):
        row = builder.load(place, align=4)
        builder.store(_fused(builder, value, row, builder.load(total)), total)

    words.each(step)
    builder.store(builder.load(total), words.lanes, align=4)


def _add_row(builder, words):
    factors = builder.load(words.lanes, align=4)

    def step(place, value):
        builder.store(_fused(builder, value, factors, builder.load(place, align=4)), place, align=4)

    words.each(step)


@intrinsic
def add_scores(typing_context, coef, indices, values, first, end, scores):
    """Add ``values[k] coef[indices[k]]``, k from `first` to `end`, to the scores (LANES,)."""
    return _operation(_add_scores)(coef, indices, values, first, end, scores)


@intrinsic
def add_row(typing_context, coef, indices, values, first, end, factors):
    """Add ``values[k] factors`` to ``coef[indices[k]]``, k from `first` to `end`."""
    return _operation(_add_row)(coef, indices, values, first, end, factors)
