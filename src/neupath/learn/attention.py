"""Attention paths: the path instances behind the score of a learned model, each with its share."""

from dataclasses import dataclass

from neupath.graph.nodes import Id


@dataclass(frozen=True)
class AttentionNode:
    """A node on an attention path."""

    node_type: str
    id: Id
    name: str | None


@dataclass(frozen=True)
class AttentionPath:
    """A path instance behind a score: its nodes from the far end to the target, the links between, and its share."""

    nodes: tuple[AttentionNode, ...]
    links: tuple[str, ...]
    weight: float
    from_query: bool
    """Whether the path starts at the query; the others tell the model what the target itself is like."""

    @property
    def metapath(self) -> str:
        steps = zip(self.links, self.nodes[1:], strict=True)
        return self.nodes[0].node_type + "".join(f" {link} {node.node_type}" for link, node in steps)
