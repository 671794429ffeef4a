"""Machine instructions that the compiler does not offer by itself, written for LLVM, which has them everywhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.chacha import Tape
from dpselect.kernels.compilation import borrowing, compiled

MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
"""All bits of a float but its sign."""

BLOCK = 64
"""Candidates that :func:`find_suspects` looks at together: as many as an integer has bits."""


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

    Among floats that are not negative, integers have the same order; negative floats are negative integers. So
    a maximum over bits is one over floats, and one that the compiler turns into vector code without fast math.
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
    """Return an integer that has the order of the floats."""
    return ordered_bits_of(float_bits(value))


@compiled
def ordered_bits_of(bits: np.int64) -> np.int64:
    """Turn the bits of a float into an integer of the same order, and back: flip all but the sign of negatives."""
    return bits ^ ((bits >> np.int64(63)) & MAGNITUDE)


@intrinsic
def _suspects(typing_context: Any, values: Any, first: Any, cut: Any, tape: Any, at: Any) -> Any:
    lanes = 8
    byte, index, word = ir.IntType(8), ir.IntType(32), ir.IntType(64)
    vector, block = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(byte, BLOCK)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position]).data

        scores = builder.bitcast(builder.gep(data(0), [arguments[1]]), vector.as_pointer())
        bytes_at = builder.bitcast(builder.gep(data(3), [arguments[4]]), block.as_pointer())
        single = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.Constant(index, 0))
        cut = builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(index, lanes), [0] * lanes))
        zeros = builder.icmp_unsigned("==", builder.load(bytes_at, align=8), ir.Constant(block, [0] * BLOCK))
        mask = builder.bitcast(zeros, word)
        for i in range(BLOCK // lanes):
            eight = builder.load(builder.gep(scores, [ir.Constant(word, i)]), align=8)
            reached = builder.zext(builder.bitcast(builder.fcmp_ordered(">=", eight, cut), byte), word)
            mask = builder.or_(mask, builder.shl(reached, ir.Constant(word, i * lanes)))
        return mask

    return types.uint64(values, types.int64, types.float64, tape, types.int64), generate


@intrinsic
def _trailing_zeros(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@borrowing
def find_suspects(values: FloatArray, first: int, cut: float, tape: Tape, at: int) -> np.uint64:
    """Return a bit for each of BLOCK candidates from ``first``: its value reaches ``cut``, or its byte is zero.

    The bytes are BLOCK // 8 words of the tape, starting at ``at``.
    """
    mask: np.uint64 = _suspects(values, first, cut, tape, at)  # type: ignore[call-arg]
    return mask


@compiled
def lowest_bit(mask: np.uint64) -> int:
    """Return the position of the lowest bit that is set."""
    position: int = _trailing_zeros(mask)  # type: ignore[call-arg]
    return position
