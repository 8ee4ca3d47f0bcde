"""Child process: runs one small case under the recorder and prints what the case itself has to say.

Request: `{"recorder": path, "case": name of CASES, "records": path}`. The answer is JSON in a JSON string.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.functional.truth.recorder import Recorder

Recording = Callable[[], contextlib.AbstractContextManager[None]]


def chain(recording: Recording) -> None:
    """An overload that calls another one of the same name."""
    tensor = torch.rand(3)
    with recording():
        torch.ops.aten.add.Scalar(tensor, 1)


def unobserved(recording: Recording) -> None:
    """Operators of ObservedOperators.cpp."""
    tensor = torch.rand(3)
    with recording():
        torch.ops.aten.size.int(tensor, 0)
        torch.ops.aten.is_leaf(tensor)
        torch.ops.aten._version(tensor)
        torch.ops.aten.is_complex(tensor)


def error(recording: Recording) -> None:
    """An operator that raises from inside another one."""
    left, right = torch.rand(2, 3), torch.rand(2, 3)
    with recording():
        with contextlib.suppress(RuntimeError):
            torch.matmul(left, right)
        torch.relu(left)


def threads(recording: Recording) -> int:
    """A kernel that dispatches from inside at::parallel_for."""
    torch.set_num_threads(2)
    image, weight = torch.rand(8, 4, 16, 16), torch.rand(4, 4, 3, 3)
    with recording():
        torch.ops.aten.slow_conv_transpose2d(image, weight, [3, 3])
    return torch.get_num_threads()


def script(recording: Recording) -> None:
    """Calls by the TorchScript interpreter."""

    def function(x: torch.Tensor) -> float:
        return float((x + x).sum(dim=[0]).item())

    scripted, tensor = torch.jit.script(function), torch.rand(3)
    with recording():
        scripted(tensor)


def needs(recording: Recording) -> None:
    """Inputs of all kinds."""
    dense = torch.rand(4, 4)
    sparse, mkldnn, nested = dense.to_sparse(), dense.to_mkldnn(), torch.nested.nested_tensor([dense])
    quantized = torch.quantize_per_tensor(dense, 0.1, 0, torch.quint8)
    packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8), None)
    conjugate, learned = dense.to(torch.complex64).conj(), dense.clone().requires_grad_()
    with recording():
        conjugate * 2
        quantized.dequantize()
        torch.ops.quantized.linear_dynamic(dense, packed)
        torch.sin(sparse)
        torch.relu(mkldnn)
        torch.neg(nested)
        torch.empty(2, 2, layout=torch.sparse_coo)
        torch.mm(dense, learned).backward(dense)


def profiler(recording: Recording) -> list[tuple[str, str]]:
    """A model under the profiler too; the answer is the edges by the times of the raw events."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1)
    model = nn.Sequential(nn.Conv1d(4, 16, 3), nn.BatchNorm1d(16), nn.ReLU(), nn.Flatten(), nn.Linear(96, 16))
    config = _ExperimentalConfig(capture_overload_names=True)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as result, recording():
        encoder.train()(model(torch.rand(2, 4, 8))[None]).sum()
        encoder.eval()(model(torch.rand(2, 4, 8))[None])
        torch.stft(torch.rand(64), 16, window=torch.hann_window(16), return_complex=True).abs().std()
        torch.linalg.lstsq(torch.rand(4, 3), torch.rand(4, 2))
    return sorted(set(_edges_by_time(result.profiler.kineto_results.events())))


def _edges_by_time(events: list[Any]) -> Iterator[tuple[str, str]]:
    open_events: list[Any] = []
    operators = [e for e in events if "::" in e.name() and " " not in e.name()]
    for event in sorted(operators, key=lambda e: (e.start_thread_id(), e.start_ns(), -e.end_ns())):
        while open_events and not _contains(open_events[-1], event):
            open_events.pop()
        if open_events:
            yield _name(open_events[-1]), _name(event)
        open_events.append(event)


def _contains(outer: Any, inner: Any) -> bool:
    return outer.start_thread_id() == inner.start_thread_id() and inner.start_ns() < outer.end_ns()


def _name(event: Any) -> str:
    return f"{event.name()}.{event.overload_name()}" if event.overload_name() else event.name()


CASES: dict[str, Callable[[Recording], object]] = {
    f.__name__: f for f in (chain, unobserved, error, threads, script, needs, profiler)
}


def main() -> None:
    """Answer one request from standard input."""
    request = json.load(sys.stdin)
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    recorder = Recorder(Path(request["recorder"]))

    @contextlib.contextmanager
    def recording() -> Iterator[None]:
        recorder.start()
        try:
            yield
        finally:
            recorder.stop()

    torch.manual_seed(0)
    answer = CASES[request["case"]](recording)
    recorder.flush(Path(request["records"]))
    with answer_to:
        json.dump(json.dumps(answer), answer_to)


if __name__ == "__main__":
    main()
