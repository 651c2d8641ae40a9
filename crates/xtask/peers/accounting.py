"""Asks one peer for a noise multiplier or an epsilon and times its answer.

`python accounting.py PEER` reads one JSON request a line from stdin and answers each with one
JSON line: {"answer": ..., "seconds": ...} or {"error": ...}. The caller decides the order, so
that it can take its own measurements between ours. Imports and the first, cold call are not timed.
"""

import json
import logging
import os
import signal
import sys
import time
import warnings

# Orders that do not converge and the like, by the hundred; errors still come through.
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

# A peer that searches forever is reported, not waited for.
LIMIT_SECONDS = 600


def dp_accounting_peer(kind):
    import dp_accounting
    from dp_accounting import pld, rdp

    make = {"PLD": pld.PLDAccountant, "RDP": rdp.RdpAccountant}[kind]
    relations = {
        "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    }

    def ask(request):
        def fresh():
            return make(neighboring_relation=relations[request["adjacency"]])

        def training(noise_multiplier):
            step = dp_accounting.PoissonSampledDpEvent(
                request["sample_rate"], dp_accounting.GaussianDpEvent(noise_multiplier)
            )
            return dp_accounting.SelfComposedDpEvent(step, request["steps"])

        if request["question"] == "epsilon":
            return fresh().compose(training(request["noise_multiplier"])).get_epsilon(request["delta"])
        return dp_accounting.calibrate_dp_mechanism(
            fresh, training, request["epsilon"], request["delta"], tol=request["tolerance"]
        )

    return ask


def opacus_peer(kind):
    from opacus.accountants.utils import get_noise_multiplier

    def ask(request):
        if request["adjacency"] != "add-remove" or request["question"] != "calibrate":
            raise NotImplementedError("opacus calibrates under add-remove only")
        return get_noise_multiplier(
            target_epsilon=request["epsilon"],
            target_delta=request["delta"],
            sample_rate=request["sample_rate"],
            steps=request["steps"],
            accountant=kind.lower(),
        )

    return ask


def run_out(signal_number, frame):
    raise TimeoutError(f"no answer after {LIMIT_SECONDS} s")


def main():
    # Libraries print to stdout as they please; the answers must stay alone there.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    library, kind = sys.argv[1].split()
    peer = None
    for line in sys.stdin:
        try:
            if peer is None:
                peer = {"dp_accounting": dp_accounting_peer, "opacus": opacus_peer}[library](kind)
            if hasattr(signal, "alarm"):
                signal.signal(signal.SIGALRM, run_out)
                signal.alarm(LIMIT_SECONDS)
            start = time.perf_counter()
            answer = peer(json.loads(line))
            reply = {"answer": float(answer), "seconds": time.perf_counter() - start}
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            reply = {"error": f"{type(error).__name__}: {text}"}
        finally:
            if hasattr(signal, "alarm"):
                signal.alarm(0)
        print(json.dumps(reply), file=answers, flush=True)


main()
