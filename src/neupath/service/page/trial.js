// Trial search with an inferred combination; its hits can be labelled too.

import { combobox } from "./combobox.js";
import { el, labelOf, problem, shown } from "./dom.js";
import { findNodes, readNode, search } from "./graphs.js";
import { HitList } from "./hits.js";
import { addPairs } from "./pairs.js";
import { nodeOptions } from "./search.js";
import { change, state } from "./state.js";

/** Open the search view with a combination; explain `target` if it is given. */
export function openSearch(mix, target = null) {
  const query = queryOf();
  change({ view: "search", mix, model: null, query, queryType: state.type, target, side: "a", compare: false });
}

/** Return the query of the trial: the chosen node, or the first one of the pairs. */
function queryOf() {
  return state.try ?? state.pairs[0]?.[0];
}

/** A search with the inferred combination, in its own element. */
export class Trial {
  constructor(mix) {
    this.mix = mix;
    this.last = null;
    this.input = el("input", { id: "try", type: "text", placeholder: "Name or id" });
    this.note = el("p", { class: "note" });
    const list = el("ol", { class: "hits", id: "hits-try", "aria-label": "Hits of the inferred search" });
    const go = { type: "button", id: "open-search", onclick: () => openSearch(mix) };
    const field = el("div", { class: "field" }, el("label", { for: "try" }, "Similar to"), this.input);
    const title = el("h3", {}, "Try the search");
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

  /** Show the hits of the query, if it has changed. */
  async update() {
    const query = queryOf();
    if (query === this.last || query === undefined) return;
    this.last = query;
    try {
      const requests = [readNode(state.graph, state.type, query), search(state.graph, { mix: this.mix }, query, 10)];
      const [node, answer] = await Promise.all(requests);
      if (document.activeElement !== this.input) this.input.value = shown(labelOf(node));
      this.hits.show(answer, { subject: query, meaning: "found by example" });
      this.note.textContent = answer.hits.length ? "" : "The inferred meta-paths connect nothing to it.";
    } catch (error) {
      this.hits.clear();
      this.note.replaceChildren(problem(error));
    }
  }
}
