"""Calls to the kernel that Python has no name for. Each raises OSError where the kernel refuses."""

import ctypes
import os
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CLONE_NEWUSER = 0x10000000
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522


def syscall(number: int, *arguments: Any) -> int:
    # Each argument is as wide as a register: ctypes would pass a plain int as 32 bits.
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *wide))


def die_with_parent(signal: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal)


def set_dumpable(dumpable: bool) -> None:
    """May processes of the same user look into this one? Fork keeps the answer, exec and setuid change it."""
    _prctl(_PR_SET_DUMPABLE, int(dumpable))


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process, however they tried to get away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def gain_no_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Of this process, and of what it executes."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # may not be dropped, or past the last one the kernel knows
            continue
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def own_user_namespace() -> None:
    """From here on, the limit of processes counts only this process and its descendants."""
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        handle = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)


def _prctl(option: int, argument: int) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero))


def _checked(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
