"""The kernels' random streams, read from Python."""

import hashlib
from collections.abc import Callable, Iterator

import numpy as np

from dpselect import kernels
from dpselect.exact.partial_uniform import PartialUniform
from dpselect.kernels.arrays import Units


class ExactStream:
    """The stream of one row: the same words in the same order, followed by as many bits as are needed.

    The kernels read up to 96 bits of a random real number. Its further bits are a keyed hash of the number's place
    in the stream, so every reading of the number gives the same bits.
    """

    def __init__(self, units: Units, row: int) -> None:
        self._kernel = kernels.chacha
        self._state = self._kernel.new_stream(units.key)
        self._kernel.seek(self._state, units.nonces, row)
        self._secret = hashlib.blake2b(
            units.nonces[row].astype("<u4").tobytes(),
            key=units.key.astype("<u4").tobytes(),
            digest_size=64,
            person=b"dpselect deep",
        ).digest()
        self._read = 0

    def word(self) -> int:
        """Return the next 64 bits."""
        self._read += 1
        return int(self._kernel.next_word(self._state))

    def below(self, bound: int) -> int:
        """Return a uniform integer below a bound, as :func:`dpselect.kernels.coins.draw_below` does."""
        threshold = (2**32 - bound) % bound
        while True:
            high, low = divmod((self.word() >> 32) * bound, 2**32)
            if low >= threshold:
                return high

    def uniform(self) -> PartialUniform:
        """Return the random real number that starts with the next word."""
        word = self.word()
        return PartialUniform(word, 64, self._further(f"word {self._read}"))

    def signed_uniform(self) -> tuple[int, PartialUniform]:
        """Return a sign and a random real number from the next word: 1 bit and the first 63 bits."""
        word = self.word()
        return (1 if word & 1 else -1), PartialUniform(word >> 1, 63, self._further(f"word {self._read}"))

    def candidate_uniform(self, candidate: int) -> PartialUniform:
        """Return a candidate's random real number: its byte, 64 more bits, and the bits of the hash.

        After a zero byte the 64 bits are the next word of the sequence, otherwise the candidate's own word.
        """
        self._kernel.load_bytes(self._state, candidate // self._kernel.GROUP_BYTES)
        byte = int(self._kernel.candidate_byte(self._state, candidate))
        word = int(self._kernel.candidate_word(self._state, candidate)) if byte else self.word()
        return PartialUniform(byte << 64 | word, 72, self._further(f"candidate {candidate}"))

    def count_uniform(self) -> PartialUniform:
        """Return the random real number that decides the number of draws."""
        return PartialUniform(self.paired_word(0), 64, self._further("count"))

    def paired_word(self, number: int) -> int:
        """Return 64 bits of the byte region. Only four of the eight blocks of its first group are used."""
        half = self._kernel.PAIR_WORDS
        place = number + half if number >= half else number // 2 * 4 + number % 2
        return int(self._kernel.packed_word(self._state, place))

    def draw_uniform(self, words: int, draw: int) -> PartialUniform:
        """Return a draw's random real number: half a packed word, the draw's own word, and the bits of the hash."""
        leading = self.paired_word(words + draw // 2) >> 32 * (draw % 2) & 0xFFFFFFFF
        word = int(self._kernel.candidate_word(self._state, draw))
        return PartialUniform(leading << 64 | word, 96, self._further(f"draw {draw}"))

    @staticmethod
    def count_octaves(size: int, read: Callable[[], int]) -> list[int]:
        """Return how many of ``size`` random numbers are below 1/2, 1/4, 1/8, …, until there are none."""
        counts: list[int] = []
        while size:
            found = [0, 0, 0]
            for first in range(0, size, 64):
                bits = 2 ** min(64, size - first) - 1
                for halving in range(3):
                    bits &= read()
                    found[halving] += bits.bit_count()
            counts += found
            size = found[-1]
        return counts

    def _further(self, place: str) -> Iterator[int]:
        count = 0
        while True:
            data = f"{place}, {count}".encode()
            digest = hashlib.blake2b(data, key=self._secret, digest_size=64).digest()
            yield from np.frombuffer(digest, dtype="<u8").tolist()
            count += 1
