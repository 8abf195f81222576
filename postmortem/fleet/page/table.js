"use strict";
(() => {
  const SIZE = 100;
  const one = (id) => document.getElementById(id);
  const still = one("still"), body = one("table").tBodies[0], count = one("count"), where = one("where");
  const all = [...still.querySelectorAll("tbody tr")];
  const lower = new WeakMap();
  let shown = all, page = 0, column = -1, down = false;
  const text = (row) => {
    if (!lower.has(row)) lower.set(row, row.textContent.toLowerCase());
    return lower.get(row);
  };
  const say = (node, a, b) =>
    node.dataset.says.split(/([#@])/).map((part) => (part === "#" ? a : part === "@" ? b : part)).join("");
  const number = new Intl.NumberFormat(document.documentElement.lang);
  const draw = () => {
    const pages = Math.max(1, Math.ceil(shown.length / SIZE));
    page = Math.min(Math.max(page, 0), pages - 1);
    body.replaceChildren(...shown.slice(page * SIZE, (page + 1) * SIZE));
    count.textContent = shown.length ? say(count, number.format(shown.length), number.format(all.length)) : count.dataset.nothing;
    where.textContent = say(where, number.format(page + 1), number.format(pages));
    one("before").disabled = page === 0;
    one("next").disabled = page === pages - 1;
    one("before").parentNode.hidden = pages === 1;
  };
  const value = (row, numeric) => {
    const cell = row.cells[column], given = cell.dataset.v ?? cell.textContent;
    if (!numeric) return given;
    return given === "" ? null : Number(given);
  };
  const order = (rows) => {
    if (column < 0) return rows;
    const numeric = one("table").tHead.querySelectorAll("button")[column].dataset.number === "1";
    const compare = new Intl.Collator(document.documentElement.lang, { numeric: true }).compare;
    const keyed = rows.map((row) => [value(row, numeric), row]);
    // what a log does not say stands last, whichever way round
    const empty = (key) => key === null || key === "";
    keyed.sort(([a], [b]) => {
      if (empty(a) || empty(b)) return empty(a) - empty(b);
      return (numeric ? a - b : compare(a, b)) * (down ? -1 : 1);
    });
    return keyed.map(([, row]) => row);
  };
  const filter = () => {
    const words = one("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = one("by-class").value, family = one("by-family").value, card = one("by-card").value;
    const group = one("by-group").value;
    shown = order(all.filter((row) =>
      (!group || row.dataset.g === group) &&
      (!kind || row.cells[1].textContent === kind) &&
      (!family || row.cells[3].textContent === family) &&
      (!card || row.cells[4].textContent === card) &&
      words.every((word) => text(row).includes(word))));
    page = 0;
    draw();
  };
  let wait = 0;
  one("find").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(filter, 120); });
  for (const id of ["by-class", "by-family", "by-card", "by-group"]) one(id).addEventListener("change", filter);
  one("filter").addEventListener("reset", () => setTimeout(filter));
  one("filter").addEventListener("submit", (event) => event.preventDefault());
  one("before").addEventListener("click", () => { page -= 1; draw(); });
  one("next").addEventListener("click", () => { page += 1; draw(); });
  for (const button of one("table").tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const asked = Number(button.dataset.column);
      down = column === asked && !down;
      column = asked;
      for (const head of one("table").tHead.rows[0].cells) head.removeAttribute("aria-sort");
      button.parentNode.setAttribute("aria-sort", down ? "descending" : "ascending");
      filter();
    });
  }
  for (const button of document.querySelectorAll("button[data-group]")) {
    button.addEventListener("click", () => {
      one("filter").reset();
      one("by-group").value = button.dataset.group;
      filter();
      one("runs").scrollIntoView();
      one("by-group").focus({ preventScroll: true });
    });
  }
  for (const node of document.querySelectorAll(".js")) node.hidden = false;
  // on paper there are no pages to turn to: the first of all that fit
  window.addEventListener("beforeprint", () => body.replaceChildren(...shown.slice(0, 5 * SIZE)));
  window.addEventListener("afterprint", draw);
  still.remove();
  draw();
})();
