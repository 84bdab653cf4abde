"""System calls that a kernel lacks or a sandbox forbids: a seccomp filter answers for them, in all that a process starts."""
import ctypes
import os
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOWED, WITH_ERROR = 0x7FFF0000, 0x00050000
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction))]


def forbid(numbers, error):
    """What subprocess calls in the child, before its exec: these calls end with `error` from then on."""
    tests = [Instruction(JUMP_IF_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    code = [Instruction(LOAD, 0, 0, 0), *tests, Instruction(RETURN, 0, 0, ALLOWED),  # the word at 0: the call's number
            Instruction(RETURN, 0, 0, WITH_ERROR | error)]

    def in_child():
        program = Program(len(code), (Instruction * len(code))(*code))
        if LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or LIBC.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) != 0:
            os._exit(99)

    return in_child


def can_be_forbidden(number, error):
    """Whether filters work here: a call that goes through one ends with its error."""
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(%d, 1, 0); print(ctypes.get_errno())" % number
    told = subprocess.run(["/usr/bin/python3", "-S", "-c", script], preexec_fn=forbid([number], error),
                          stdout=subprocess.PIPE, text=True, check=False)
    return told.stdout == "%d\n" % error
