"""Makes PrivUnit reports, or the normal numbers in them, with NumPy and times it.

`python local.py PEER` reads one JSON request a line from stdin and answers each with one JSON
line: {"answer": ..., "seconds": ...} or {"error": ...}. A request names the work ("reports" or
"normals"), how many vectors of which dimension, how many threads, and the constants of the
mechanism. All vectors are the first axis, and the answer to "reports" is the mean of the first
coordinates, which is 1 but for chance. Imports and inputs are not timed.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# So many vectors at a time stay in the cache.
TOGETHER = 256


def reports(vectors, law, generator):
    """A report of every row, which must have length 1."""
    import numpy
    from scipy.special import betaincinv

    count, dimension = vectors.shape
    inside = generator.random(count) < law["p"]
    uniform = generator.random(count)
    cap = law["cap_probability"]
    tail = numpy.where(inside, uniform * cap, cap + uniform * (1.0 - cap))
    half = (dimension - 1) / 2
    along = 1.0 - 2.0 * betaincinv(half, half, tail)
    rest = generator.standard_normal((count, dimension))
    rest -= numpy.einsum("ij,ij->i", rest, vectors)[:, None] * vectors
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", rest, rest))
    rest *= (numpy.sqrt(1.0 - along * along) / lengths / law["m"])[:, None]
    rest += (along / law["m"])[:, None] * vectors
    return rest


class Work:
    def __init__(self, vectors, dimension):
        import numpy

        self.vectors = numpy.zeros((vectors, dimension))
        self.vectors[:, 0] = 1.0

    def share(self, what, law, generator, rows):
        """What one thread does: the sum of the first coordinates of its rows."""
        total = 0.0
        for first in range(rows.start, rows.stop, TOGETHER):
            some = self.vectors[first : min(first + TOGETHER, rows.stop)]
            made = reports(some, law, generator) if what == "reports" else generator.standard_normal(some.shape)
            total += made[:, 0].sum()
        return total

    def race(self, what, law, threads):
        import numpy

        count = len(self.vectors)
        generators = numpy.random.default_rng().spawn(threads)
        size = -(-count // threads)
        shares = [range(first, min(first + size, count)) for first in range(0, count, size)]
        start = time.perf_counter()
        if threads == 1:
            total = self.share(what, law, generators[0], shares[0])
        else:
            with ThreadPoolExecutor(threads) as pool:
                total = sum(pool.map(lambda pair: self.share(what, law, *pair), zip(generators, shares)))
        return total / count, time.perf_counter() - start


def main():
    # Libraries print to stdout as they please; the answers must stay alone there.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    known, work = None, None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            size = (request["vectors"], request["dimension"])
            if size != known:
                work, known = Work(*size), size
            answer, seconds = work.race(request["what"], request["law"], request["threads"])
            reply = {"answer": float(answer), "seconds": seconds}
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            reply = {"error": f"{type(error).__name__}: {text}"}
        print(json.dumps(reply), file=answers, flush=True)


main()
