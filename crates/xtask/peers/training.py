"""Takes training steps with one peer and times them.

`python training.py PEER` reads one JSON request a line from stdin and answers each with one
JSON line: {"answer": loss, "seconds": mean of a step} or {"error": ...}. A request names the
work (rows, features, outputs, batch), how batches come about ("loader": the peer's own Poisson
loader, or a plain one without privacy; "sliced": one batch that was cut out before), and how
many steps to take. Data and model of a work are kept until another work is asked for, and the
first, cold steps are not timed.
"""

import json
import logging
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

COLD_STEPS = 15
NOISE_MULTIPLIER = 2.744
CLIP_NORM = 1.0
LEARNING_RATE = 0.1


class Work:
    """Synthetic rows, a linear model, and steps of stochastic gradient descent on it."""

    def __init__(self, mode, rows, features, outputs, batch):
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(0)
        one = outputs == 1
        x = torch.randn(rows, features)
        y = torch.randn(rows) if one else torch.randint(0, outputs, (rows,))
        self.criterion = torch.nn.MSELoss() if one else torch.nn.CrossEntropyLoss()
        self.model = torch.nn.Linear(features, outputs, bias=not one)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=mode == "plain")
        if mode != "plain":
            self.protect(mode)
        self.one = one
        self.cut = (x[:batch].clone(), y[:batch].clone())
        self.batches = iter(())

    def protect(self, mode):
        from opacus import PrivacyEngine

        parts = dict(module=self.model, optimizer=self.optimizer, data_loader=self.loader)
        if mode == "ghost":
            parts["criterion"] = self.criterion
        made = PrivacyEngine().make_private(
            noise_multiplier=NOISE_MULTIPLIER, max_grad_norm=CLIP_NORM, grad_sample_mode=mode, **parts
        )
        if mode == "ghost":
            self.model, self.optimizer, self.criterion, self.loader = made
        else:
            self.model, self.optimizer, self.loader = made

    def next_batch(self):
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch

    def step(self, source):
        x, y = self.next_batch() if source == "loader" else self.cut
        self.optimizer.zero_grad()
        scores = self.model(x)
        loss = self.criterion(scores.view(-1) if self.one else scores, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def race(self, source, steps):
        for _ in range(COLD_STEPS):
            loss = self.step(source)
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step(source)
        return loss.item(), (time.perf_counter() - start) / steps


def main():
    # Libraries print to stdout as they please; the answers must stay alone there.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    mode = sys.argv[1].split()[-1]
    known, work = None, None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["work"] != known:
                work, known = None, None
                work = Work(mode, **request["work"])
                known = request["work"]
            loss, seconds = work.race(request["source"], request["steps"])
            # Noise may well make a loss overflow; its value is not the question.
            reply = {"answer": min(max(loss, -1e300), 1e300) if loss == loss else 0.0, "seconds": seconds}
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            reply = {"error": f"{type(error).__name__}: {text}"}
        print(json.dumps(reply), file=answers, flush=True)


main()
