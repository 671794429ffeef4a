"""What Numba's simulator of CUDA lacks: operations of a warp. Import this after NUMBA_ENABLE_CUDASIM is set."""

import threading
from types import SimpleNamespace

import numpy as np
from numba.cuda.simulator import kernel, kernelapi

WARP = 32


class Warp:
    """The lanes of a warp leave values for each other.

    They take turns: each runs until it has a value to leave. There are two places for values, so that a lane may
    leave its next one before others have read the last.
    """

    def __init__(self):
        self.locks = [threading.Lock() for _ in range(WARP)]
        for lock in self.locks:
            lock.acquire()
        self.places = [[None] * WARP, [None] * WARP]
        self.failed = False

    def pass_on(self, lane):
        self.locks[(lane + 1) % WARP].release()

    def wait(self, lane):
        self.locks[lane].acquire()
        if self.failed:
            raise RuntimeError("another lane failed")

    def exchange(self, thread, value):
        lane = thread.thread_id % WARP
        thread.turn ^= 1
        place = self.places[thread.turn]
        place[lane] = value
        self.pass_on(lane)
        self.wait(lane)
        return place


def exchanged(value):
    thread = threading.current_thread()
    return thread.thread_id % WARP, thread.warp.exchange(thread, value)


def shuffle(source):
    def shuffled(_, mask, value, number):
        assert mask == 0xFFFFFFFF
        lane, values = exchanged(value)
        chosen = source(lane, int(number))
        return values[chosen] if 0 <= chosen < WARP else value

    return shuffled


def ballot_sync(_, mask, predicate):
    assert mask == 0xFFFFFFFF
    return sum(1 << lane for lane, flag in enumerate(exchanged(bool(predicate))[1]) if flag)


kernelapi.FakeCUDAModule.shfl_sync = shuffle(lambda _, number: number)
kernelapi.FakeCUDAModule.shfl_up_sync = shuffle(lambda lane, number: lane - number)
kernelapi.FakeCUDAModule.shfl_xor_sync = shuffle(lambda lane, number: lane ^ number)
kernelapi.FakeCUDAModule.ballot_sync = ballot_sync
kernelapi.FakeCUDAModule.all_sync = lambda _, mask, predicate: all(exchanged(bool(predicate))[1])  # noqa: ARG005
kernelapi.FakeCUDAModule.syncwarp = lambda _: exchanged(None) and None


def run(manager, block, *arguments):
    """Run the threads of a block, warp after warp."""

    def work():
        np.seterr(all="ignore")  # as on a device; the setting is the thread's own
        thread = threading.current_thread()
        lane = thread.thread_id % WARP
        thread.warp.wait(lane)
        try:
            manager._f(*arguments)
        except BaseException:
            thread.warp.failed = True
            raise
        finally:
            if lane < WARP - 1 or thread.warp.failed:
                thread.warp.pass_on(lane)

    places = list(np.ndindex(*manager._block_dim))
    for first in range(0, len(places), WARP):
        warp = Warp()
        threads = [
            kernel.BlockThread(work, manager, block, place, debug=False) for place in places[first : first + WARP]
        ]
        for thread in threads:
            thread.warp, thread.turn = warp, 0
            thread.start()
        warp.locks[0].release()
        for thread in threads:
            thread.join()
        errors = [thread.exception for thread in threads if thread.exception]
        for error, trace in sorted(errors, key=lambda pair: "another lane failed" in str(pair[0])):
            raise error.with_traceback(trace)


def call(launch, function, *arguments):
    """Call a function of the device as it is: the module whose kernel runs has the fake `cuda` already."""
    return function.fn(*arguments) if function._device else launch(function, *arguments)


kernel.BlockManager.run = run
launch = kernel.FakeCUDAKernel.__call__
kernel.FakeCUDAKernel.__call__ = lambda function, *arguments: call(launch, function, *arguments)


class Simulated:
    """An array that says it is on a CUDA device, and that the simulator reads."""

    device = "cuda:0"

    def __init__(self, array):
        self.array = array
        self.dtype, self.ndim, self.shape, self.size = array.dtype, array.ndim, array.shape, array.size

    def __dlpack__(self, **_):
        raise BufferError("on another device")

    def __dlpack_device__(self):
        return (2, 0)

    def __array_namespace__(self):
        return SimpleNamespace(asarray=lambda array, device: Simulated(array))  # noqa: ARG005

    def __getitem__(self, places):
        part = self.array[places]
        return part if isinstance(threading.current_thread(), kernel.BlockThread) else Simulated(part)

    def astype(self, kind):
        return Simulated(self.array.astype(kind))

    def reshape(self, *shape):
        return Simulated(self.array.reshape(*shape))

    def get(self):
        return self.array
