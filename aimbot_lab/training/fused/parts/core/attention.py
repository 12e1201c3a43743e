"""Scores of units to aim at: the product of a query with each unit's key (Ye et al. 2020).

Score of a unit = q . key with no 1 / sqrt(K), of nobody = q . its learned key. A slot without a
unit has no score; masks rule it out.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import called
from aimbot_lab.foundation.kernels.matmul import dot
from aimbot_lab.training.fused.parts.core.arrays import PartsNet, PartsNetworks, PartsWorkspace

ZERO = np.float32(0.0)


@called
def attend(whole: PartsNetworks, workspace: PartsWorkspace) -> None:
    """Write the scores to the columns of `head.outputs` that belong to the target."""
    net, target, outputs = whole.net, whole.layout.target, workspace.head.outputs
    first = net.action.shape[0] - net.nobody.size
    for n in range(outputs.shape[0]):
        row, query = outputs[n], workspace.query[n]
        for k in range(query.size):
            query[k] = row[first + k] + net.action_bias[first + k]
        row[target] = dot(query, net.nobody)
        for number in range(whole.layout.kinds):
            kind, arrays = whole.kinds[number], workspace.kinds[number]
            if kind.target > 0:
                size = arrays.pooled.shape[1]
                for unit in range(arrays.first[n], arrays.first[n + 1]):
                    choice = kind.target + arrays.slots[unit]
                    row[target + choice] = dot(query, arrays.outputs[unit, size:])


@called
def attend_backward(whole: PartsNetworks, workspace: PartsWorkspace, of: PartsNet) -> None:
    """From the derivatives by the scores, in `head.logits`, to those by keys and query.

    The latter take the last rows of `head.logits`; those of the scores become 0, because no weight
    leads to a score directly.
    """
    net, target, logits = whole.net, whole.layout.target, workspace.head.logits
    first = net.action.shape[0] - net.nobody.size
    of.nobody[:] = ZERO
    for n in range(logits.shape[1]):
        query, of_query, slope = workspace.query[n], workspace.of_query[n], logits[target, n]
        for k in range(query.size):
            of_query[k] = slope * net.nobody[k]
            of.nobody[k] += slope * query[k]
        for number in range(whole.layout.kinds):
            kind, arrays = whole.kinds[number], workspace.kinds[number]
            if kind.target > 0:
                size = arrays.pooled.shape[1]
                for unit in range(arrays.first[n], arrays.first[n + 1]):
                    slope = logits[target + kind.target + arrays.slots[unit], n]
                    key, of_key = arrays.outputs[unit], arrays.of_keys[unit]
                    for k in range(query.size):
                        of_query[k] += slope * key[size + k]
                        of_key[k] = slope * query[k]
        for k in range(query.size):
            logits[first + k, n] = of_query[k]
    for k in range(target, target + whole.layout.targets):
        logits[k, :] = ZERO
