"""An interrupt is never lost, wherever it comes."""

import ctypes
import os
import signal
import threading

import pytest

from deltarank.core.interrupts import held_interrupts

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def call_back_from_c(action):
    """Run an action as threadpoolctl does when it looks for libraries: called from C."""
    array = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(array, 2, ctypes.sizeof(ctypes.c_int), CALLBACK(action))


def interrupt(*pointers):
    os.kill(os.getpid(), signal.SIGINT)
    return 0


def test_an_interrupt_in_a_callback_from_c_comes_at_the_end_of_the_block():
    after = []

    def work():
        with held_interrupts():
            call_back_from_c(interrupt)
            after.append("the block goes on to its end")
        after.append("nothing follows it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert after == ["the block goes on to its end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_the_block_is_passed_on_and_the_handler_is_put_back():
    with pytest.raises(ValueError, match="own"), held_interrupts():
        raise ValueError("own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_ignored_interrupts_are_left_alone():
    seen = []

    def look():
        with held_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]
