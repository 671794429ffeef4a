"""The version, in a file of its own so that the build and the package read the same line."""

__version__ = "0.1.0"
