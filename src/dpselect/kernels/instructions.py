"""Machine instructions that Numba does not offer, written for LLVM, which has them on every platform."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.chacha import StreamState
from dpselect.kernels.compilation import compiled, compiled_without_refcounts

MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
"""All bits of a float except its sign."""

BLOCK = 64
"""The number of candidates tested together: one for each bit of an integer."""


@intrinsic
def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@compiled
def fused_multiply_add(a: float, b: float, c: float) -> float:
    """Return a·b + c, rounded once."""
    result: float = _fma(a, b, c)  # type: ignore[call-arg]
    return result


def _reinterpret(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


@intrinsic
def _bits(typing_context: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    return types.int64(types.float64), _reinterpret


@intrinsic
def _float(typing_context: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    return types.float64(types.int64), _reinterpret


@compiled
def float_bits(value: float) -> np.int64:
    """Return the bits of a float as a signed integer.

    The integers of nonnegative floats have the order of the floats, and negative floats give negative integers. A
    maximum over bits is therefore a maximum over floats, which the compiler vectorises without fast math.
    """
    bits: np.int64 = _bits(value)  # type: ignore[call-arg]
    return bits


@compiled
def float_of_bits(bits: np.int64) -> float:
    """Return the float that has these bits."""
    value: float = _float(bits)  # type: ignore[call-arg]
    return value


@compiled
def ordered_bits(value: float) -> np.int64:
    """Return an integer; these integers have the order of the floats."""
    return ordered_bits_of(float_bits(value))


@compiled
def ordered_bits_of(bits: np.int64) -> np.int64:
    """Convert between a float's bits and an integer of the same order: flip all but the sign bit of negatives."""
    return bits ^ ((bits >> np.int64(63)) & MAGNITUDE)


def _data(context: Any, builder: Any, kind: Any, array: Any, first: Any) -> Any:
    """Return a pointer to element ``first`` of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [first])


@intrinsic
def _reaching(typing_context: Any, values: Any, first: Any, cut: Any) -> Any:
    lanes = 8
    byte, index, word = ir.IntType(8), ir.IntType(32), ir.IntType(64)
    vector = ir.VectorType(ir.DoubleType(), lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _data(context, builder, signature.args[0], arguments[0], arguments[1])
        numbers = builder.bitcast(numbers, vector.as_pointer())
        single = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.Constant(index, 0))
        cut = builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(index, lanes), [0] * lanes))
        mask = ir.Constant(word, 0)
        for i in range(BLOCK // lanes):
            eight = builder.load(builder.gep(numbers, [ir.Constant(word, i)]), align=8)
            reached = builder.zext(builder.bitcast(builder.fcmp_ordered(">=", eight, cut), byte), word)
            mask = builder.or_(mask, builder.shl(reached, ir.Constant(word, i * lanes)))
        return mask

    return types.uint64(values, types.int64, types.float64), generate


@intrinsic
def _zero_bytes(typing_context: Any, stream: Any, at: Any) -> Any:
    block = ir.VectorType(ir.IntType(8), BLOCK)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = _data(context, builder, signature.args[0], arguments[0], arguments[1])
        random = builder.load(builder.bitcast(start, block.as_pointer()), align=8)
        zeros = builder.icmp_unsigned("==", random, ir.Constant(block, [0] * BLOCK))
        return builder.bitcast(zeros, ir.IntType(64))

    return types.uint64(stream, types.int64), generate


@intrinsic
def _trailing_zeros(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _leading_zeros(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _ones(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@compiled
def ones_of(number: np.uint64) -> int:
    """Return the number of bits that are set."""
    count: int = _ones(number)  # type: ignore[call-arg]
    return count


@compiled_without_refcounts
def reaching(values: FloatArray, first: int, cut: float) -> np.uint64:
    """Return a mask with one bit for each of the BLOCK values from index ``first`` on: set if at least ``cut``."""
    mask: np.uint64 = _reaching(values, first, cut)  # type: ignore[call-arg]
    return mask


@compiled_without_refcounts
def zero_bytes(stream: StreamState, at: int) -> np.uint64:
    """Return a mask with one bit for each of the BLOCK bytes from word ``at`` of a stream on: set if it is zero."""
    mask: np.uint64 = _zero_bytes(stream, at)  # type: ignore[call-arg]
    return mask


@compiled
def leading_zeros(number: np.uint64) -> int:
    """Return the number of zero bits above the highest bit that is set."""
    count: int = _leading_zeros(number)  # type: ignore[call-arg]
    return count


@compiled
def lowest_bit(mask: np.uint64) -> int:
    """Return the position of the lowest bit that is set."""
    position: int = _trailing_zeros(mask)  # type: ignore[call-arg]
    return position


@compiled_without_refcounts
def first_reaching(values: FloatArray, cut: float) -> int:
    """Return the index of the first value that is at least ``cut``. There must be one."""
    first = 0
    while first + BLOCK <= values.size:
        mask = reaching(values, first, cut)
        if mask != 0:
            return first + lowest_bit(mask)
        first += BLOCK
    while not values[first] >= cut:
        first += 1
    return first
