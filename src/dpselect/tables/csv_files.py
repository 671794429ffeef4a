"""How a CSV file is read: its delimiter, encoding and decimal mark, recognised or given.

Only what is certain is recognised. A file that could be read in two ways is refused with the option to give: a
sensitivity that is read wrongly voids the guarantee.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

DELIMITERS = (",", ";", "\t", "|")

SAMPLE_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Csv:
    """The options of a CSV file. What is ``None`` is recognised.

    Attributes:
        delimiter: What is between two fields; by default what is in the line of column names.
        encoding: By default UTF-8, or UTF-16 if the file begins with its mark.
        decimal: The decimal mark, ``"."`` or ``","``.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or not self.delimiter.isascii()):
            raise ValueError(f"delimiter must be one character, such as ';', not {self.delimiter!r}")
        if self.decimal not in {".", ","}:
            raise ValueError(f"decimal must be '.' or ',', not {self.decimal!r}")
        if self.decimal == self.delimiter:
            raise ValueError("decimal and delimiter must differ")
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError:
            raise ValueError(
                f"encoding must be one such as utf-8, latin-1 or utf-16, not {self.encoding!r}"
            ) from None

    def recognised(self, sample: bytes, path: Path, numbers: Collection[str]) -> "Csv":
        """Recognise what was not given, from the first bytes of a file; refuse what cannot be recognised.

        ``numbers`` are the names of columns that will be read as numbers.
        """
        encoding = self.encoding or _encoding(sample, path.name)
        lines = sample.decode(encoding, "replace").lstrip("\ufeff").splitlines() or [""]
        header = re.sub(r'"[^"]*"', "", lines[0])
        found = ["\t"] if ".tsv" in path.suffixes else [mark for mark in DELIMITERS if mark in header]
        delimiter = self.delimiter or (found[0] if found else ",")
        if "," not in {delimiter, self.decimal}:
            for column, field in zip(*(line.split(delimiter) for line in [*lines, ""][:2]), strict=False):
                if column.strip(' "') in numbers and re.fullmatch(r'[\s"]*[-+]?[0-9]+,[0-9]+[\s"]*', field):
                    raise ValueError(
                        f"{path.name!r}: column {column!r} seems to have decimal commas; give --decimal , if it "
                        "has, or write numbers with a point and without other marks"
                    )
        return replace(self, delimiter=delimiter, encoding=encoding)

    def column_names(self, sample: bytes) -> list[str]:
        """Return the names in the first line of a file that begins like this. All must be recognised."""
        text = sample.decode(self.encoding or "utf-8", "replace").encode()
        whole = text if len(sample) < SAMPLE_BYTES else text[: text.rfind(b"\n") + 1]
        options = pa.csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=lambda _: "skip")
        with pa.csv.open_csv(pa.BufferReader(whole), parse_options=options) as reader:
            return list(reader.schema.names)

    def numbers(self, column: pa.Array) -> pa.Array:
        """Return a column of numbers as text with decimal points; null where points already separate thousands."""
        if self.decimal == ".":
            return column
        clear = pc.if_else(pc.match_substring(column, "."), pa.scalar(None, pa.string()), column)
        return pc.replace_substring(clear, ",", ".")


def _encoding(sample: bytes, name: str) -> str:
    """Return the encoding of a file that begins like this."""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in sample:
        raise ValueError(f"{name!r} is not UTF-8 text; if it is UTF-16, give --encoding utf-16-le or utf-16-be")
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(sample) - 3 or len(sample) < SAMPLE_BYTES:  # not a character that the sample has cut
            raise ValueError(not_utf8(name)) from None
    return "utf-8"


def not_utf8(name: str) -> str:
    """Say what to do about a file that is not UTF-8."""
    return (
        f"{name!r} is not UTF-8: give its encoding, --encoding cp1252 or latin-1 for a file from Excel on Windows, "
        "or save it as CSV UTF-8"
    )
