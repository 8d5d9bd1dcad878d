"""Use neupath as a retriever: entities with their evidence, in the shapes that LangChain and LlamaIndex expect.

Both frameworks call one method and read a few fields. Where one is installed, subclass its `BaseRetriever` and return
its `Document` or `NodeWithScore`; nothing else changes.
"""

from dataclasses import dataclass, field
from typing import Any

import neupath as npth
from neupath.engine.hits import Hit


@dataclass(frozen=True)
class Document:
    """What LangChain calls a document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredNode:
    """What LlamaIndex calls a node with a score."""

    text: str
    score: float


class SimilarEntities:
    """Finds the entity that a question names, and those most similar to it along a meta-path, with reasons."""

    def __init__(self, hin: npth.HIN, metapath: str, k: int = 3) -> None:
        self.hin, self.k = hin, k
        self.scorer = npth.PathSim(metapath).fit(hin)

    def _answer(self, question: str) -> list[tuple[Hit, str]]:
        entity = self.hin.find(question, k=1, node_type=self.scorer.source_type)[0].id
        hits = self.scorer.top_k(entity, k=self.k)
        return [(hit, npth.explain(self.hin, self.scorer.metapath_, entity, hit.id).summary) for hit in hits]

    def invoke(self, question: str) -> list[Document]:
        """Answer as a LangChain retriever does."""
        return [
            Document(f"{hit.name or hit.id}: {reason}", {"id": hit.id, "score": hit.score})
            for hit, reason in self._answer(question)
        ]

    def retrieve(self, question: str) -> list[ScoredNode]:
        """Answer as a LlamaIndex retriever does."""
        return [ScoredNode(f"{hit.name or hit.id}: {reason}", hit.score) for hit, reason in self._answer(question)]


if __name__ == "__main__":
    retriever = SimilarEntities(npth.load("toy"), "author-paper-venue-paper-author")
    for document in retriever.invoke("mike"):
        print(document.page_content)
    print(retriever.retrieve("mike")[0].score)
