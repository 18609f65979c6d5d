"use strict";
// Text from data reaches the page as textContent only.
const data = JSON.parse(document.getElementById("data").textContent);
const NEAR = "600px 0px";
const MOST_TABLE_ROWS = 1000;
document.body.classList.add("scripted");

const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

// Lists begin with how they are written; see the docstring of encoding.py.
function decoded(place) {
  const list = data.lists[place];
  if (list[0] === "r") return list.slice(1);
  const factor = list[1];
  let sum = 0;
  return list.slice(2).map((step) => {
    if (step === null) return null;
    sum += step;
    return sum / factor;
  });
}

function valueText(value, format) {
  if (value === null || value === undefined) return "not defined";
  if (typeof value !== "number") return String(value);
  if (format === "percent") return `${(100 * value).toFixed(1)}%`;
  if (format === "time") return new Date(value).toISOString().slice(0, 16).replace("T", " ");
  const size = Math.abs(value);
  if (format === "integer" || (Number.isInteger(value) && size < 1e6)) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 1e-3 && size < 1e6) return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  return value.toExponential(2);
}

// Titles of axes take several lines, and names less room, where a chart is narrow.
function fitText(spec) {
  const most = Math.max(12, Math.floor((spec.width - 70) / 6.4));
  for (const layer of spec.layer) {
    for (const axis of [layer.encoding.x, layer.encoding.y]) {
      if (!axis) continue;
      if (axis === layer.encoding.x && axis.title) axis.title = wrapped(axis.title, most);
      if (axis.axis && axis.axis.labelLimit) axis.axis.labelLimit = Math.min(axis.axis.labelLimit, spec.width * 0.36);
    }
  }
}

function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.length > 1 ? lines : text;
}

class Chart {
  constructor(stage, entry) {
    Object.assign(this, { stage, entry, view: null, group: null, rows: [], index: -1 });
    this.figure = document.getElementById(entry.id);
    this.host = this.figure.querySelector(".chart");
    this.order = entry.series.map((_, s) => s).reverse(); // the most important is drawn last and told first
    this.drawing = Promise.resolve();
    this.tip = make("div", undefined, "tip");
    this.hair = make("div", undefined, entry.flat ? "hair flat" : "hair");
    this.table = this.figure.querySelector("details");
    this.table.addEventListener("toggle", () => this.fillTable());
    this.host.addEventListener("pointermove", (event) => this.point(event));
    this.host.addEventListener("pointerleave", () => this.unpoint());
    this.host.addEventListener("blur", () => this.unpoint());
    this.host.addEventListener("keydown", (event) => this.step(event));
  }

  get panel() {
    return this.entry.across ? this.entry.panels[0] : this.entry.panels[this.stage.shown];
  }

  load() {
    const panel = this.panel;
    this.group = this.stage.shown;
    this.rows = [];
    if (!panel) return;
    const columns = Object.entries(panel.columns).map(([name, place]) => [name, decoded(place)]);
    const length = columns[0][1].length;
    for (let i = 0; i < length; i += 1) {
      const row = { i };
      for (const [name, values] of columns) row[name] = values[i];
      this.rows.push(row);
    }
  }

  // Charts are drawn one after the other, so that a page with many stays quick to answer.
  show() {
    this.drawing = this.drawing.then(() => this.draw()).catch((error) => console.error(error));
    return this.drawing;
  }

  async draw() {
    if (this.view && (this.entry.across || this.group === this.stage.shown)) return;
    this.load();
    this.unpoint();
    const panel = this.panel;
    const [low, high] = panel ? panel.ends : [0, 1];
    const chosen = panel ? panel.chosen : [];
    if (this.view) {
      this.view.data("rows", this.rows).signal("low", low).signal("high", high);
      if (this.entry.marked) this.view.data("chosen", chosen);
      await this.view.runAsync();
    } else {
      const spec = JSON.parse(JSON.stringify(this.entry.spec));
      for (const param of spec.params) param.value = param.name === "low" ? low : high;
      spec.datasets = { rows: this.rows, chosen };
      spec.width = this.host.clientWidth;
      fitText(spec);
      const inside = make("div");
      const options = { ast: true, renderer: "svg", actions: false, tooltip: false, hover: false, defaultStyle: false, logLevel: 1 };
      const result = await window.vegaEmbed(inside, spec, options);
      this.view = result.view;
      this.host.replaceChildren(inside, this.hair, this.tip);
      this.host.classList.add("live");
      this.unpoint();
    }
    this.describe();
    if (this.table.open) this.fillTable(true);
  }

  describe() {
    const { entry, stage } = this;
    const name = this.figure.querySelector(".of");
    const label = stage.groups.length ? stage.groups[stage.shown].label : "all";
    if (name) name.textContent = entry.across || label === "all" ? "" : `: ${label}`;
    const sentences = [entry.across ? entry.title : `${entry.title}, ${label}`];
    this.order.forEach((s) => {
      const series = entry.series[s];
      const rows = this.rows.filter((row) => row[`v${s}`] !== null);
      const at = (row) => `${valueText(row[`v${s}`], entry.yFormat)} at ${valueText(row.x, entry.xFormat)}`;
      const sorted = rows.slice().sort((a, b) => a[`v${s}`] - b[`v${s}`]);
      sentences.push(rows.length ? `${series}: lowest ${at(sorted[0])}, highest ${at(sorted[sorted.length - 1])}` : `${series}: not defined`);
    });
    this.host.setAttribute("aria-label", `${sentences.join(". ")}.`);
  }

  resize() {
    if (this.view) this.view.width(this.host.clientWidth).runAsync();
  }

  origin() {
    const [left, top] = this.view.origin();
    const padding = this.view.padding();
    return [left + padding.left, top + padding.top];
  }

  // Pixel of a row in the chart, from its top left corner.
  place(row) {
    const { entry, view } = this;
    const [left, top] = this.origin();
    if (entry.flat) {
      const names = view.scale("y");
      return [left, top + names(row.x) + (names.bandwidth ? names.bandwidth() / 2 : 0)];
    }
    const value = this.order.map((s) => row[`v${s}`]).find((v) => v !== null && v !== undefined);
    return [left + view.scale("x")(row.x), value === undefined ? null : top + view.scale("y")(value)];
  }

  point(event) {
    if (!this.view || !this.rows.length) return;
    const box = this.host.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let nearest = -1;
    let least = Infinity;
    this.rows.forEach((row, i) => {
      const [px, py] = this.place(row);
      if (this.entry.path && py === null) return;
      const distance = this.entry.flat ? Math.abs(py - y) : this.entry.path ? Math.hypot(px - x, py - y) : Math.abs(px - x);
      if (distance < least) [nearest, least] = [i, distance];
    });
    if (nearest >= 0) this.tell(nearest);
  }

  step(event) {
    const back = ["ArrowLeft", "ArrowUp"].includes(event.key);
    if (!this.view || !(back || ["ArrowRight", "ArrowDown"].includes(event.key))) return;
    event.preventDefault();
    this.tell(Math.min(Math.max(this.index + (back ? -1 : 1), 0), this.rows.length - 1));
  }

  tell(index) {
    this.index = index;
    const { entry, tip, hair } = this;
    const row = this.rows[index];
    const [px, py] = this.place(row);
    tip.replaceChildren(make("b", `${entry.xTitle ? `${entry.xTitle.split(":")[0]}: ` : ""}${valueText(row.x, entry.xFormat)}`));
    this.order.forEach((s) => {
      const name = entry.series[s];
      const [value, low, high] = [row[`v${s}`], row[`l${s}`], row[`u${s}`]];
      if (entry.sparse && (value === null || value === undefined)) return;
      const limits = low === null || low === undefined ? "" : ` (${valueText(low, entry.yFormat)} to ${valueText(high, entry.yFormat)})`;
      tip.append(make("div", `${name}: ${valueText(value, entry.yFormat)}${limits}`));
    });
    const chosen = this.panel.chosen.filter((point) => point.x === row.x).map((point) => point.c);
    if (chosen.length && !entry.path) tip.append(make("div", `chosen: ${chosen.join(", ")}`));
    if (row.d) tip.append(make("div", "limits doubtful", "few"));
    tip.hidden = hair.hidden = false;
    const width = this.host.clientWidth;
    const left = entry.flat ? width - tip.offsetWidth - 8 : px + 14 + tip.offsetWidth > width ? px - tip.offsetWidth - 14 : px + 14;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = entry.flat ? `${py + 10}px` : "8px";
    const [ox, oy] = this.origin();
    Object.assign(hair.style, entry.flat
      ? { left: `${ox}px`, top: `${py}px`, width: `${width - ox - 4}px` }
      : { left: `${px}px`, top: `${oy}px`, height: `${this.view.signal("height")}px` });
  }

  unpoint() {
    this.tip.hidden = this.hair.hidden = true;
    this.index = -1;
  }

  fillTable(again = false) {
    if (!this.table.open || (this.table.dataset.group === String(this.stage.shown) && !again)) return;
    this.table.dataset.group = String(this.stage.shown);
    this.load();
    const { entry } = this;
    const table = make("table");
    const head = table.createTHead().insertRow();
    const body = table.createTBody();
    const limited = entry.series.map((_, s) => this.rows.some((row) => row[`l${s}`] !== undefined));
    head.append(make("th", entry.xTitle.split(":")[0] || "name"));
    this.order.forEach((s) => head.append(make("th", entry.series[s]), ...(limited[s] ? [make("th", "interval")] : [])));
    for (const row of this.rows.slice(0, MOST_TABLE_ROWS)) {
      const line = body.insertRow();
      line.append(make("td", valueText(row.x, entry.xFormat)));
      this.order.forEach((s) => {
        line.append(make("td", valueText(row[`v${s}`], entry.yFormat), row[`v${s}`] === null ? "undefined" : ""));
        const [low, high] = [row[`l${s}`], row[`u${s}`]];
        const words = low === null || low === undefined ? "–" : `${valueText(low, entry.yFormat)} to ${valueText(high, entry.yFormat)}${row.d ? " *" : ""}`;
        if (limited[s]) line.append(make("td", words, "digits"));
      });
    }
    const scroll = make("div", undefined, "scroll");
    scroll.tabIndex = 0;
    scroll.append(table);
    const notes = [];
    if (this.rows.some((row) => row.d)) notes.push(make("p", "* limits doubtful", "note"));
    if (this.rows.length > MOST_TABLE_ROWS) notes.push(make("p", `The first ${MOST_TABLE_ROWS} of ${this.rows.length} rows.`, "note"));
    this.table.replaceChildren(this.table.querySelector("summary"), scroll, ...notes);
  }
}
