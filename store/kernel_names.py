"""Names of kernels as people write them, from the names that compilers give them: pure."""

from __future__ import annotations

import cxxfilt

_ANONYMOUS = "(anonymous namespace)"


def readable(name: str) -> str:
    """A mangled C++ name taken apart, without return type and parameters; any other name as it is.

    ``_ZN2at6native...`` becomes ``at::native::vectorized_elementwise_kernel<4, ...>``. Template
    arguments stay: they often are all that tells two kernels apart.
    """
    try:
        whole: str = cxxfilt.demangle(name, external_only=False)
    except (cxxfilt.Error, UnicodeError):
        return name
    text = whole.replace(f"{_ANONYMOUS}::", "")
    start, depth = 0, 0
    for place, letter in enumerate(text):
        if letter in "<>":
            depth += 1 if letter == "<" else -1
        elif depth == 0 and letter == " ":
            start = place + 1
        elif depth == 0 and letter == "(":
            return text[start:place]
    return text[start:]
