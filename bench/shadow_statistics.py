"""What differs between the two halves of many pairs, when most of the noise is the machine's.

A pair is two neighbouring blocks of one job, so that a drift hits both alike; which of them is first is drawn by lot.
The estimate is that of Hodges and Lehmann (the median of the means of all pairs of differences): a few blocks in
which something else ran do not move it. The interval is Wilcoxon's signed-rank interval, which assumes nothing but
that noise falls on either half alike.
"""
import math
import statistics

NORMAL_95 = 1.959964


def walsh_averages(differences):
    return sorted((differences[i] + differences[j]) / 2 for i in range(len(differences)) for j in range(i + 1))


def shift(differences):
    """(estimate, low, high): the typical difference and its 95 % interval. At least six differences."""
    n = len(differences)
    if n < 6:
        raise ValueError("%d pairs are too few for an interval" % n)
    averages = walsh_averages(differences)
    # Of the n(n+1)/2 averages, so many from either end are outside (normal approximation to the signed-rank sum).
    outside = n * (n + 1) / 4 - NORMAL_95 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    cut = min(max(int(math.floor(outside)), 0), (len(averages) - 1) // 2)
    return statistics.median(averages), averages[cut], averages[len(averages) - 1 - cut]


def spread(values):
    """Half the distance between the quartiles, in per cent of the median: how much blocks of one kind differ."""
    low, middle, high = statistics.quantiles(values, n=4)
    return 100 * (high - low) / 2 / middle if middle else 0.0
