"""Kernels: functions that numba compiles for fixed types; scipy or Python does their work until then.

A module of kernels imports no numba. `@kernel(...)` says which types a function takes, and `@part` marks what kernels
call. Three ways lead to the machine code, which numba keeps on disk:

- `load_in_background` loads kernels on a thread, while the caller goes another way (`engine.topk` goes by scipy);
- `Kernel.run` lets Python run the function where there is little to do, with the same result to the bit;
- a call loads the kernel first, and a note says what is compiled if that takes longer than a second.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Lock, RLock, Thread, local, main_thread
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np

_log = logging.getLogger("neupath.compilation")

NOTE_AFTER = 1.0  # seconds that somebody waits for kernels before a note says so
_WATCH = 0.1  # seconds between looks at what is waited for
LIGHT_STEPS = 1_000_000  # steps that Python runs in the half second that loading numba and a cached kernel takes

Types = str | tuple[Any, ...]
"""How a kernel names the type of an argument: `int64`, `float64[:]` (`[:,:]` with two axes, row by row),
`const float64[:]` (only read), a tuple of these, or `?`, which stands for one of the kernel's variants."""


class _Interpreter(local):
    """How deep a thread is in kernels that Python runs."""

    depth = 0


_interpreter = _Interpreter()


class Kernel:
    """A function and the types that it is compiled for.

    Parameters
    ----------
    function
        What numba compiles. Kernels and parts that it calls are compiled with it.
    types
        The type of each argument; none for a part, which numba compiles for what it is called with.
    variants
        The types that `?` stands for, the usual one first; each is compiled when it is first needed.

    >>> @kernel("const float64[:]", "int64")
    ... def element(numbers, at):
    ...     return numbers[at]
    >>> element.run(1, np.array([1.0, 2.0]), 1), element.code
    (np.float64(2.0), {})
    >>> element(np.array([1.0, 2.0]), 1), list(element.code)
    (2.0, [''])
    """

    def __init__(self, function: Callable[..., Any], types: tuple[Types, ...], variants: tuple[str, ...]) -> None:
        self.function, self.types, self.variants = function, types, variants
        self.code: dict[str, Callable[..., Any]] = {}
        """The machine code of each variant that is loaded."""
        self._steps = 0  # that Python has run
        self._callee: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if not self.types or _interpreter.depth:
            return self.function(*arguments)
        return self.load(self._variant_of(arguments))(*arguments)

    def run(self, steps: float, *arguments: Any) -> Any:
        """Call the machine code, or the function in Python if it is not loaded and these few steps don't pay for it."""
        variant = self._variant_of(arguments)
        code = self.code.get(variant)
        if code is None and steps <= LIGHT_STEPS:
            self._steps += int(steps)
            if self._steps > LIGHT_STEPS:  # more will come
                load_in_background([(self, variant)])
            return self.interpret(*arguments)
        return (code or self.load(variant))(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """Let Python run the function, and the kernels and parts that it calls."""
        _interpreter.depth += 1
        try:
            with np.errstate(all="ignore"):  # as machine code does
                return self.function(*arguments)
        finally:
            _interpreter.depth -= 1

    def load(self, variant: str) -> Callable[..., Any]:
        """Return the machine code of a variant, which numba reads from its cache, or compiles."""
        if variant not in self.code:
            with _Wait(self.function.__module__):
                self._load(variant)
        return self.code[variant]

    def _load(self, variant: str) -> None:
        with _loading:
            if variant not in self.code:
                code = _Wait.at_hand = numba_function(self.function)
                code.compile(tuple(_numba_type(types, variant) for types in self.types))
                code.disable_compile()  # so that it takes arrays that may be written where it only reads
                self.code[variant] = code

    def _variant_of(self, arguments: tuple[Any, ...]) -> str:
        if len(self.variants) == 1:
            return self.variants[0]
        return next(name for pair in zip(self.types, arguments, strict=True) if (name := _type_at_mark(*pair)))

    @property
    def _numba_type_(self) -> Any:
        """How numba sees the kernel in others that call it: as a function to compile for what it is given."""
        from numba import njit, types

        if self._callee is None:
            self._callee = njit(nogil=True)(self.function)
        return types.Dispatcher(self._callee)


def kernel(*types: Types, variants: tuple[str, ...] = ("",)) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel, and the types of its arguments; see `Kernel`."""
    return lambda function: Kernel(function, types, variants)


def part(function: Callable[..., Any]) -> Any:
    """Declare a function that kernels call: it is compiled with them, and has no machine code of its own."""
    return Kernel(function, (), ())


def numba_function(function: Callable[..., Any]) -> Any:
    """Let numba compile a function that releases the GIL, and cache the machine code on disk where possible.

    Numba numbers the files of a function from 1 on in each process. Two processes that compile for different types at
    the same time would overwrite each other's, and a third could run the code of the wrong types; so each has names of
    its own.
    """
    from numba import njit

    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache
        return njit(nogil=True)(function)
    files = compiled._cache._cache_file
    files._data_name_pattern = files._data_name_pattern.replace("{number:d}", f"{{number:d}}-{uuid4().hex[:16]}")
    return compiled


def _numba_type(types: Types, variant: str) -> Any:
    from numba import types as numba_types

    if isinstance(types, tuple):
        every = [_numba_type(each, variant) for each in types]
        return numba_types.BaseTuple.from_types(every)  # type: ignore[no-untyped-call]
    name, _, axes = types.removeprefix("const ").partition("[")
    scalar = getattr(numba_types, variant if name == "?" else name)
    return numba_types.Array(scalar, 1 + axes.count(","), "C", readonly=types.startswith("const ")) if axes else scalar


def _type_at_mark(types: Types, argument: Any) -> str:
    """Return the type of the array at the first `?`, or an empty text if no type has one."""
    if isinstance(types, tuple):
        return next((name for pair in zip(types, argument, strict=True) if (name := _type_at_mark(*pair))), "")
    return str(argument.dtype) if "?" in types else ""


# ---- Notes ---------------------------------------------------------------------------------------
class _Wait:
    """Log once, at the level INFO, that kernels are compiled where somebody has waited for them for over a second."""

    seconds = 0.0  # that somebody has waited so far
    has_logged = False
    at_hand: Any = None  # the function that numba compiles, or reads from its cache

    def __init__(self, module: str) -> None:
        self._what = module.rpartition(".")[2].replace("_", " ")
        self._ended = Event()

    def __enter__(self) -> None:
        self._began = monotonic()
        if not _Wait.has_logged:
            with suppress(RuntimeError):  # no more threads
                Thread(target=self._watch, name="neupath-note", daemon=True).start()

    def _watch(self) -> None:
        patience = NOTE_AFTER - _Wait.seconds
        while not self._ended.wait(max(patience, _WATCH)):
            if _Wait.at_hand is not None and _Wait.at_hand.stats.cache_misses:
                _Wait.has_logged = True
                _log.info(f"compiling {self._what} for the first use on this machine, which takes some seconds")
                return
            patience = _WATCH

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        _Wait.seconds += monotonic() - self._began


# ---- Loading on a thread -------------------------------------------------------------------------
class Loading:
    """Kernels that the thread loads one after the other."""

    def __init__(self, kernels: Sequence[tuple[Kernel, str]]) -> None:
        self.kernels = tuple(kernels)
        self._began, self._done = monotonic(), Event()

    @property
    def age(self) -> float:
        """The seconds since they were asked for."""
        return monotonic() - self._began

    @property
    def is_loaded(self) -> bool:
        return all(variant in kernel.code for kernel, variant in self.kernels)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the thread has loaded them, or has failed to; return whether it is done."""
        return self._done.wait(seconds)

    def run(self) -> None:
        """Load the kernels; a program that ends waits only for the one at hand."""
        try:
            for each, variant in self.kernels:
                if main_thread().is_alive():
                    each._load(variant)
        except Exception as error:  # too little memory, no numba: callers go on without
            _log.warning("kernels cannot be compiled, and slower code answers: %s: %s", type(error).__name__, error)
        finally:
            self._done.set()


THREAD = "neupath-kernels"
_loading = RLock()  # held while a kernel is loaded
_starting = Lock()
_thread: Thread | None = None
_queue: deque[Loading] = deque()
_asked: dict[tuple[tuple[int, str], ...], Loading] = {}


def load_in_background(kernels: Sequence[tuple[Kernel, str]]) -> Loading | None:
    """Let the thread load kernels, each given with its variant; None where no thread can be started."""
    global _thread  # noqa: PLW0603
    key = tuple((id(each), variant) for each, variant in kernels)
    with _starting:
        if key not in _asked:
            if _thread is None:
                thread = Thread(target=_load_in_turn, name=THREAD)
                try:
                    thread.start()  # it waits for `_starting`
                except RuntimeError:
                    return None
                _thread = thread
            _asked[key] = Loading(kernels)
            _queue.append(_asked[key])
        return _asked[key]


def _load_in_turn() -> None:
    global _thread  # noqa: PLW0603
    while True:
        with _starting:
            if not _queue:
                _thread = None
                return
            loading = _queue.popleft()
        loading.run()


def _forget_thread() -> None:
    """Let a forked child, which has none of its parent's threads, start its own; what was asked for is asked again."""
    global _thread  # noqa: PLW0603
    _thread = None
    _queue.clear()
    _asked.clear()
    _starting.release()
    _loading.release()


def _hold() -> None:
    """Wait for the kernel at hand: a forked child would wait forever for the thread that loads it."""
    _loading.acquire()
    _starting.acquire()


def _let_go() -> None:
    _starting.release()
    _loading.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_forget_thread)
