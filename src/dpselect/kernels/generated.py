"""Machine instructions that the compiler's language does not offer, written for LLVM, which has them everywhere.

Each function has the name of one in :mod:`dpselect.kernels.instructions` or :mod:`dpselect.kernels.chacha`, which
does the same in Python.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dpselect.kernels.chacha import BYTE_REGION, LANES, OTHER, PAIR, QUARTER_ROUNDS
from dpselect.kernels.instructions import BLOCK

WORD, INDEX, VECTOR = ir.IntType(32), ir.IntType(64), ir.VectorType(ir.IntType(32), LANES)


def _splat(builder: Any, value: Any) -> Any:
    single = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.Constant(WORD, 0))
    return builder.shuffle_vector(single, single, ir.Constant(VECTOR, [0] * LANES))


def _input(context: Any, builder: Any, kind: Any, stream: Any, first: int, count: int) -> list[Any]:
    """Return 32-bit words of the state, each copied to all lanes."""
    words = builder.bitcast(context.make_array(kind)(context, builder, stream).data, WORD.as_pointer())
    places = (builder.gep(words, [ir.Constant(INDEX, i)]) for i in range(first, first + count))
    return [_splat(builder, builder.load(place)) for place in places]


def _store_blocks(context: Any, builder: Any, kind: Any, stream: Any, start: list[Any], target: Any) -> None:
    """Compute the blocks of an input and write them to the state."""

    def rotate(value: Any, bits: int) -> Any:
        left = builder.shl(value, ir.Constant(VECTOR, [bits] * LANES))
        return builder.or_(left, builder.lshr(value, ir.Constant(VECTOR, [32 - bits] * LANES)))

    x = list(start)
    for _ in range(10):
        for a, b, c, d in QUARTER_ROUNDS:
            for total, addend, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[total] = builder.add(x[total], x[addend])
                x[mixed] = rotate(builder.xor(x[mixed], x[total]), bits)
    first = builder.gep(context.make_array(kind)(context, builder, stream).data, [target])
    groups = builder.bitcast(first, VECTOR.as_pointer())
    for i in range(16):
        place = builder.gep(groups, [ir.Constant(INDEX, i)])
        builder.store(builder.add(start[i], x[i]), place, align=8)


@intrinsic
def compute_group(typing_context: Any, stream: Any, block: Any, target: Any) -> Any:
    """Write the blocks numbered ``block``, ``block`` + 1, … to the state, starting at ``target``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, place = signature.args[0], arguments[0]
        start = _input(context, builder, kind, place, 0, 16)
        numbers = _splat(builder, builder.trunc(arguments[1], WORD))
        start[12] = builder.add(numbers, ir.Constant(VECTOR, list(range(LANES))))
        _store_blocks(context, builder, kind, place, start, arguments[2])
        return context.get_dummy_value()

    return types.void(stream, types.int64, types.int64), generate


@intrinsic
def compute_pair(typing_context: Any, stream: Any) -> Any:
    """Write the first half of the byte region's first group to the state, for this stream and for the other one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, place = signature.args[0], arguments[0]
        start = _input(context, builder, kind, place, 0, 16)
        others = _input(context, builder, kind, place, 2 * OTHER + 1, 3)
        halves = ir.Constant(VECTOR, [i if i < LANES // 2 else LANES + i for i in range(LANES)])
        for i, other in enumerate(others, start=13):
            start[i] = builder.shuffle_vector(start[i], other, halves)
        start[12] = ir.Constant(VECTOR, [BYTE_REGION + i % (LANES // 2) for i in range(LANES)])
        _store_blocks(context, builder, kind, place, start, ir.Constant(INDEX, PAIR))
        return context.get_dummy_value()

    return types.void(stream), generate


@intrinsic
def fused_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _reinterpret(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


@intrinsic
def float_bits(typing_context: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    return types.int64(types.float64), _reinterpret


@intrinsic
def float_of_bits(typing_context: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    return types.float64(types.int64), _reinterpret


def _data(context: Any, builder: Any, kind: Any, array: Any, first: Any) -> Any:
    """Return a pointer to element ``first`` of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [first])


@intrinsic
def reaching(typing_context: Any, values: Any, first: Any, cut: Any) -> Any:
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
def zero_bytes(typing_context: Any, stream: Any, at: Any) -> Any:
    block = ir.VectorType(ir.IntType(8), BLOCK)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = _data(context, builder, signature.args[0], arguments[0], arguments[1])
        random = builder.load(builder.bitcast(start, block.as_pointer()), align=8)
        zeros = builder.icmp_unsigned("==", random, ir.Constant(block, [0] * BLOCK))
        return builder.bitcast(zeros, ir.IntType(64))

    return types.uint64(stream, types.int64), generate


@intrinsic
def load_ahead(typing_context: Any, values: Any, first: Any, last: Any) -> Any:
    line, number = ir.Constant(INDEX, 8), ir.IntType(32)
    hints = [ir.Constant(number, hint) for hint in (0, 2, 1)]  # to be read, into the second cache, data

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, *ends = arguments
        loop: Any = cgutils.for_range_slice
        with loop(builder, *ends, line, INDEX) as (place, _):
            there = _data(context, builder, signature.args[0], array, place)
            kind = ir.FunctionType(ir.VoidType(), [there.type, *(hint.type for hint in hints)])
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", [there.type], kind), [there, *hints])
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64), generate


def _bits(name: str, *flags: int) -> Any:
    """Return an instruction that counts bits of an integer."""

    @intrinsic
    def count(typing_context: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(arguments[0], *(ir.Constant(ir.IntType(1), flag) for flag in flags))

        return types.int64(types.uint64), generate

    return count


lowest_bit, leading_zeros, ones_of = _bits("cttz", 0), _bits("ctlz", 0), _bits("ctpop")
