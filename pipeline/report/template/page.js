// One stage: its charts, its control and its table of groups. `charts.js` stands before this text in the page.
class Stage {
  constructor(content) {
    Object.assign(this, content);
    this.section = document.getElementById(this.id);
    this.shown = 0;
    this.charts = this.figures.map((entry) => new Chart(this, entry));
    this.rows = [...this.section.querySelectorAll(".groups tbody tr")];
    this.picker = this.section.querySelector(".picker select");
    this.seen = new Set();
    this.watchCharts();
    if (this.picker) this.picker.addEventListener("change", () => this.choose(Number(this.picker.value)));
    if (this.rows.length) this.watchTable();
    this.multiples = [...this.section.querySelectorAll(".multiples button")];
    for (const button of this.multiples) button.addEventListener("click", () => this.choose(Number(button.dataset.group)));
  }

  watchCharts() {
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const chart = this.charts.find((candidate) => candidate.host === entry.target);
        if (!entry.isIntersecting) this.seen.delete(chart);
        else {
          this.seen.add(chart);
          queue(() => chart.show());
        }
      }
    }, { rootMargin: NEAR });
    for (const chart of this.charts) watcher.observe(chart.host);
  }

  choose(group) {
    this.shown = group;
    if (this.picker) this.picker.value = String(group);
    for (const row of this.rows) row.setAttribute("aria-selected", String(Number(row.dataset.group) === group));
    for (const button of this.multiples) button.setAttribute("aria-pressed", String(Number(button.dataset.group) === group));
    this.section.querySelectorAll(".tile").forEach((tile, t) => fillTile(tile, this.numbers[group][t]));
    for (const chart of this.seen) chart.show();
  }

  watchTable() {
    const table = this.section.querySelector(".groups");
    const body = table.tBodies[0];
    this.rows[0].tabIndex = 0;
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.choose(Number(row.dataset.group));
    });
    body.addEventListener("keydown", (event) => this.walk(event));
    const find = this.section.querySelector(".tools input");
    const count = this.section.querySelector(".tools .count");
    if (find) find.addEventListener("input", () => {
      const words = find.value.toLowerCase();
      let left = 0;
      for (const row of this.rows) {
        row.hidden = !this.groups[row.dataset.group].label.toLowerCase().includes(words);
        left += row.hidden ? 0 : 1;
      }
      count.textContent = `${left.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")} groups`;
    });
    table.querySelectorAll("thead button").forEach((button) => {
      button.addEventListener("click", () => this.sort(table, button.closest("th"), Number(button.dataset.number)));
    });
  }

  walk(event) {
    const rows = this.rows.filter((row) => !row.hidden).sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    const at = rows.indexOf(event.target.closest("tr"));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(Number(rows[at].dataset.group));
    else if (next === undefined || !rows[next]) return;
    else {
      rows[at].tabIndex = -1;
      rows[next].tabIndex = 0;
      rows[next].focus();
    }
    event.preventDefault();
  }

  // Groups without the number come last in either direction.
  sort(table, header, number) {
    const down = header.getAttribute("aria-sort") !== "descending" && number >= 0 || header.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const key = (row) => (number < 0 ? this.groups[row.dataset.group].label : this.numbers[row.dataset.group][number].value);
    this.rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (number < 0 ? x.localeCompare(y, "en", { numeric: true }) : x - y);
    });
    table.tBodies[0].append(...this.rows);
  }
}

function fillTile(tile, number) {
  const text = (name, words) => {
    tile.querySelector(name).textContent = words;
    tile.querySelector(name).hidden = !words;
  };
  text(".number", number.text);
  tile.querySelector(".number").classList.toggle("undefined", number.value === null);
  text(".limits", number.limits);
  text(".doubt", number.doubt);
  const scale = tile.querySelector(".scale");
  if (!scale) return;
  const percent = (value) => `${Math.min(Math.max(100 * value, 0), 100)}%`;
  const [band, dot] = [scale.querySelector("i"), scale.querySelector("b")];
  scale.classList.toggle("pale", Boolean(number.doubt));
  band.hidden = number.lower === null;
  dot.hidden = number.value === null;
  if (!band.hidden) Object.assign(band.style, { left: percent(number.lower), width: `${parseFloat(percent(number.upper)) - parseFloat(percent(number.lower))}%` });
  if (!dot.hidden) dot.style.left = percent(number.value);
}

const waiting = [];
let working = false;
async function queue(task) {
  waiting.push(task);
  if (working) return;
  working = true;
  while (waiting.length) {
    await waiting.shift()();
    await new Promise((resolve) => { setTimeout(resolve, 0); });
  }
  working = false;
}

// On a phone a warning is one line until it is opened, so that the first number is on the first screen.
if (matchMedia("screen and (max-width: 720px)").matches) {
  for (const warning of document.querySelectorAll("details.warning")) warning.open = false;
}
const stages = data.stages.map((content) => new Stage(content));
let timer = 0;
window.addEventListener("resize", () => {
  clearTimeout(timer);
  timer = setTimeout(() => { for (const stage of stages) for (const chart of stage.charts) chart.resize(); }, 120);
});
