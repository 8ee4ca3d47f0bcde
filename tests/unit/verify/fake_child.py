"""Stands in for opsieve.verify.child.main, without torch: does what the inputs file of each run names."""

import json
import os
import signal
import sys
import time


def tell(event):
    print(json.dumps(event), flush=True)  # noqa: T201 (that is how a child tells)


request = json.load(sys.stdin)
if os.environ.get("FAKE_IMPORT") == "fails":
    sys.exit("ImportError: no torch")
tell({"torch": os.environ.get("FAKE_TORCH", os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] + "/torch")})
for run in request.get("runs", []):
    tell({"started": run["number"]})
    match run["inputs"]:
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "guard":
            sys.stderr.write("warning: old\n\nopsieve: libx.so: removed code\n  function: f\n")
            sys.exit(86)
        case "leave":
            sys.exit(0)
        case "hang":
            time.sleep(600)
        case "garbage":
            sys.stdout.write("nonsense\n")
    text = os.environ.get("ATEN_CPU_CAPABILITY", "native")
    tell({"finished": run["number"], "outcome": {"kind": "error", "calls": [], "text": text}})
tell({"path": os.environ.get("PYTHONPATH")})
if os.environ.get("FAKE_EXIT"):
    sys.exit(3)
