"""The native observer of operators (`hotlap run --observe operators`): loaded once PyTorch is there, and left alone."""
import os

VARIABLE = "HOTLAP_OBSERVE_OPERATORS"  # the library's path


def attach_area(torch, recorder, core):
    path = os.environ.get(VARIABLE)
    if not path:
        return
    import ctypes

    try:
        begin = ctypes.CDLL(path).hotlap_observe_operators
    except (OSError, AttributeError) as error:
        recorder.info("observer.operators", "off: %s" % error)
        return
    begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    reason = ctypes.create_string_buffer(256)
    if begin(str(torch.__version__).encode(), reason, len(reason)) != 0:
        recorder.info("observer.operators", "off: %s" % reason.value.decode("utf-8", "replace"))
