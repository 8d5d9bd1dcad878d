// Ranked list of hits; the rows move to their new ranks when the meaning changes.

import { announce, count, el, isolated, labelOf, nodeName, score } from "./dom.js";

const MOVE = { duration: 420, easing: "cubic-bezier(.2,.7,.2,1)" };

/** Hits in an `ol`; `actions` has choose(hit) and label(hit, score). */
export class HitList {
  constructor(list, actions) {
    this.list = list;
    this.actions = actions;
    this.rows = new Map();
    this.ranks = null;
  }

  /** Show hits. `about` has the subject and the meaning; if only the meaning changes, each row shows its move. */
  show({ hits }, about) {
    const moved = this.ranks && this.subject === about.subject && this.meaning !== about.meaning ? this.ranks : null;
    if (this.subject !== about.subject || this.meaning !== about.meaning)
      this.moves = moved && { ranks: moved, from: this.meaning };
    const tops = new Map([...this.rows].map(([id, row]) => [id, row.getBoundingClientRect().top]));
    const focused = this.list.contains(document.activeElement)
      ? document.activeElement.closest("li")?.dataset.id
      : null;
    const best = Math.max(0, ...hits.map((hit) => hit.score));
    const rows = new Map(hits.map((hit) => [String(hit.id), this.row(hit, best)]));
    this.list.replaceChildren(...rows.values());
    this.rows = rows;
    if (focused && rows.has(focused)) rows.get(focused).querySelector("button").focus();
    if (moved) this.animate(tops);
    [this.ranks, this.subject, this.meaning] = [
      new Map(hits.map((hit) => [String(hit.id), hit.rank])),
      about.subject,
      about.meaning,
    ];
    announce(`${count(hits.length, "hit")}${hits.length ? `, the best is ${labelOf(hits[0])}` : ""}`);
    return this.moves ? this.describeMoves(hits) : null;
  }

  clear() {
    this.list.replaceChildren();
    this.rows = new Map();
    this.ranks = this.moves = null;
  }

  row(hit, best) {
    const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("span", {}));
    bar.firstChild.style.width = `${best > 0 ? (100 * hit.score) / best : 0}%`;
    const open = {
      type: "button",
      class: "open",
      "aria-describedby": "hit-help",
      onclick: () => this.actions.choose(hit),
    };
    const shown = [
      el("span", { class: "rank" }, String(hit.rank)),
      this.movement(hit),
      el("span", { class: "who" }, nodeName(hit)),
      bar,
      el("span", { class: "score" }, score(hit.score)),
    ];
    const judge = el(
      "span",
      { class: "judge" },
      this.judge(hit, 1, "✓", "is similar"),
      this.judge(hit, 0, "✕", "is not similar"),
    );
    return el("li", { "data-id": hit.id, class: "hit" }, el("button", open, shown), judge);
  }

  judge(hit, value, sign, words) {
    const label = `${isolated(labelOf(hit), 80)} ${words}: add to the examples`;
    const act = () => this.actions.label(hit, value);
    return el("button", { type: "button", title: words, "aria-label": label, onclick: act }, sign);
  }

  movement(hit) {
    if (!this.moves) return null;
    const before = this.moves.ranks.get(String(hit.id));
    const by = before === undefined ? null : before - hit.rank;
    const [text, label, kind] =
      by === null
        ? ["new", "new in the list", "new"]
        : by > 0
          ? [`▲${by}`, `moved up ${count(by, "rank")}`, "up"]
          : by < 0
            ? [`▼${-by}`, `moved down ${count(-by, "rank")}`, "down"]
            : ["=", "same rank", "still"];
    return el(
      "span",
      { class: `move ${kind}`, title: label },
      el("span", { "aria-hidden": "true" }, text),
      el("span", { class: "unseen" }, ` ${label} `),
    );
  }

  describeMoves(hits) {
    const ids = new Set(hits.map((hit) => String(hit.id)));
    const lost = [...this.moves.ranks.keys()].filter((id) => !ids.has(id)).length;
    return `Compared with ${this.moves.from}${lost ? `; ${count(lost, "hit")} left the list` : ""}.`;
  }

  animate(tops) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const [id, row] of this.rows) {
      const by = tops.has(id) ? tops.get(id) - row.getBoundingClientRect().top : 0;
      if (by) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], MOVE);
      else if (!tops.has(id)) row.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
    }
  }

  /** Mark the hit that is explained, and show the rank of each hit in the other list. */
  mark(chosen, other = null) {
    for (const [id, row] of this.rows) {
      row.querySelector(".open").setAttribute("aria-current", id === chosen ? "true" : "false");
      row.querySelector(".elsewhere")?.remove();
      if (!other) continue;
      const rank = other.ranks?.get(id);
      const label = rank === undefined ? "not in the other list" : `rank ${rank} in the other list`;
      row
        .querySelector(".score")
        .after(
          el(
            "span",
            { class: `elsewhere${rank === undefined ? " none" : ""}`, title: label },
            el("span", { "aria-hidden": "true" }, rank === undefined ? "–" : `↔${rank}`),
            el("span", { class: "unseen" }, ` ${label}`),
          ),
        );
    }
  }
}
