"""Graphs of nets without decisions, for gradients in float32: rounding turns no ReLU and no maximum of theirs."""


def smoothed(graph):
    """The graph, as MXNet's JSON has it, with softrelu in place of ReLUs and averages in place of maxima."""
    for node in graph["nodes"]:
        attrs = node.get("attrs", {})
        if node["op"] == "clip" or attrs.get("act_type") == "relu":
            node["op"], node["attrs"] = "Activation", {"act_type": "softrelu"}
        elif attrs.get("pool_type") == "max":
            attrs["pool_type"] = "avg"
    return graph
