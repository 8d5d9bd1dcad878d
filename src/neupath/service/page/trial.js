// Trial: the search that pairs gave, tried at once; its hits can be labelled in turn.

import { combobox } from "./combobox.js";
import { el, labelOf, problem, shown } from "./dom.js";
import { findNodes, readNode, search } from "./graphs.js";
import { HitList } from "./hits.js";
import { addPairs } from "./pairs.js";
import { nodeOptions } from "./search.js";
import { change, state } from "./state.js";

/** Go to the search by a weighted sum, with a hit explained where one is given. */
export function openSearch(mix, target = null) {
  const query = queryOf();
  change({ view: "search", mix, model: null, query, queryType: state.type, target, side: "a", compare: false });
}

/** The node that is tried: the one chosen, or the first of the pairs. */
function queryOf() {
  return state.try ?? state.pairs[0]?.[0];
}

/** A search by what was found, in an element of its own. */
export class Trial {
  constructor(mix) {
    this.mix = mix;
    this.last = null;
    this.input = el("input", { id: "try", type: "text", placeholder: "Name or id" });
    this.note = el("p", { class: "note" });
    const list = el("ol", { class: "hits", id: "hits-try", "aria-label": "Hits of what was found" });
    const go = { type: "button", id: "open-search", onclick: () => openSearch(mix) };
    const field = el("div", { class: "field" }, el("label", { for: "try" }, "Similar to"), this.input);
    const title = el("h3", {}, "The search it gives");
    const button = el("button", go, "Open in Search, with the paths");
    this.element = el("div", { class: "trial" }, title, field, this.note, list, button);
    this.hits = new HitList(list, {
      choose: (hit) => openSearch(mix, String(hit.id)),
      label: (hit, value) => addPairs(state.type, [[queryOf(), hit.id, value]]),
    });
    combobox(this.input, {
      find: async (text, signal) => nodeOptions(await findNodes(state.graph, state.type, text, 12, signal)),
      choose: (node) => {
        this.input.value = shown(labelOf(node));
        change({ try: String(node.id) });
      },
    });
  }

  /** Show the hits of the node that the state names, where it names another than before. */
  async update() {
    const query = queryOf();
    if (query === this.last || query === undefined) return;
    this.last = query;
    try {
      const asked = [readNode(state.graph, state.type, query), search(state.graph, { mix: this.mix }, query, 10)];
      const [node, answer] = await Promise.all(asked);
      if (document.activeElement !== this.input) this.input.value = shown(labelOf(node));
      this.hits.show(answer, { subject: query, meaning: "found by example" });
      this.note.textContent = answer.hits.length ? "" : "Nothing is joined to it by what was found.";
    } catch (error) {
      this.hits.clear();
      this.note.replaceChildren(problem(error));
    }
  }
}
