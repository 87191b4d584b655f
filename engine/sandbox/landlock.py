"""Landlock: from here on, this process and its descendants reach only the paths that it names (man 7 landlock)."""

import ctypes
import os
import stat
from collections.abc import Iterable

from engine.sandbox import system

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ONLY_TELL_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIRECTORY = 1 << 3
_TRUNCATE = 1 << 14
_DEVICE_CONTROL = 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIRECTORY
_OF_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _DEVICE_CONTROL
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11

# The last right that each version of the interface knows; those before it are known as well.
_LAST_RIGHT = {1: 12, 2: 13, 3: 14, 4: 14}
_LAST_RIGHT_NOW = 15

_SCOPES_SINCE = 6
_SCOPE_SIGNALS_AND_SOCKETS = 0b11


class _Rules(ctypes.Structure):
    _fields_ = (
        ("of_files", ctypes.c_uint64),
        ("of_network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # what `_pack_` means, said aloud: Python 3.19 will ask for it
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Of the kernel's interface; 0 where it has none, or has it switched off."""
    try:
        return system.syscall(_CREATE_RULESET, None, 0, _ONLY_TELL_VERSION)
    except OSError:
        return 0


def restrict(*, readable: Iterable[str], writable: Iterable[str], kernel: int) -> None:
    """`kernel` is what `version()` said. Paths that do not exist are left out; needs `gain_no_privileges`.

    Since version 6 this process can also signal none but itself and its descendants.
    """
    known = (1 << _LAST_RIGHT.get(kernel, _LAST_RIGHT_NOW) + 1) - 1
    scoped = _SCOPE_SIGNALS_AND_SOCKETS if kernel >= _SCOPES_SINCE else 0
    rules = _Rules(known, 0, scoped)
    size = ctypes.sizeof(rules) if kernel >= _SCOPES_SINCE else ctypes.sizeof(ctypes.c_uint64)
    ruleset = system.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    try:
        writing = known & ~(_MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)
        for paths, rights in ((readable, _READ), (writable, writing)):
            for path in paths:
                _allow(ruleset, path, rights & known)
        system.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # what cannot be reached needs no right
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = _Beneath(rights, handle)
        system.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)
