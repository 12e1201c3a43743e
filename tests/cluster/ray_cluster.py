"""A Ray of several machines on this one: `python ray_cluster.py PROCESSORS`.

Prints its address, then does what standard input says, a line each, until that is closed: `add` or
`remove` a machine of one processor, `behead` it.
"""

import sys

from ray.cluster_utils import Cluster


def main() -> None:
    head = {"num_cpus": int(sys.argv[1]), "include_dashboard": False}
    cluster, added = Cluster(initialize_head=True, head_node_args=head), []
    say(cluster.address)
    for line in sys.stdin:
        match line.strip():
            case "add":
                added.append(cluster.add_node(num_cpus=1))
            case "remove":
                cluster.remove_node(added.pop(), allow_graceful=False)
            case "behead":
                cluster.head_node.kill_gcs_server()
        say(f"{line.strip()} done")
    cluster.shutdown()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
