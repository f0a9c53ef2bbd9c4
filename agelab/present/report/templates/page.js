"use strict";
// Sorting and filtering of the tables, pages of the long one, the switch of colours, copying of commands.
(() => {
  const PAGE = 100, FEW = 8, PRINTED = 1000;
  const said = document.getElementById("said");
  const element = (name, attributes = {}, text = "") => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };

  // A row is its cells as texts and as what they are sorted by, and an element once it has been shown.
  const standing = (table) => [...table.tBodies[0].rows].map((row) => ({
    element: row,
    texts: [...row.cells].map((cell) => cell.textContent),
    values: [...row.cells].map((cell) => "v" in cell.dataset ? Number(cell.dataset.v) : null),
  }));
  const stored = (source) => {
    const { words, texts, rows } = JSON.parse(source.textContent);
    return rows.map((row) => ({
      texts: row.map((cell, at) => cell === null ? "–" : texts.includes(at) ? words[cell] : String(cell)),
      values: row.map((cell, at) => texts.includes(at) ? null : cell),
    }));
  };
  const shown = (row, numbers) => {
    if (!row.element) {
      row.element = document.createElement("tr");
      row.texts.forEach((text, at) => row.element.append(
        element(at ? "td" : "th", { ...(at ? {} : { scope: "row" }), ...(numbers[at] ? { class: "number" } : {}) }, text)));
    }
    return row.element;
  };
  const collator = new Intl.Collator("en", { numeric: true });

  document.querySelectorAll("[data-table]").forEach((box) => {
    const table = box.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const long = box.dataset.table === "data";
    const rows = long ? stored(box.querySelector("script")) : standing(table);
    const numbers = heads.map((head) => head.classList.contains("number"));
    const caption = table.caption.textContent;
    let column = -1, down = false, page = 0, words = [];

    const compare = (one, other) => {
      const [a, b] = [one.values[column], other.values[column]];
      if (a === null || b === null) {
        if (a !== null || b !== null) return a === null ? 1 : -1; // what was not measured comes last
        if (numbers[column]) return 0;
        const order = collator.compare(one.texts[column], other.texts[column]);
        return down ? -order : order;
      }
      return down ? b - a : a - b;
    };
    const count = element("output"), before = element("button", { type: "button" }, "Previous"),
      after = element("button", { type: "button" }, "Next");
    const draw = (tell, most = 0) => {
      let found = rows.filter((row) => {
        row.low ??= row.texts.join("\n").toLowerCase();
        return words.every((word) => row.low.includes(word));
      });
      if (column >= 0) found = [...found].sort(compare);
      const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
      page = Math.min(page, last);
      const whole = !long || found.length <= most;
      const from = whole ? 0 : page * PAGE, part = whole ? found : found.slice(from, from + PAGE);
      body.replaceChildren(...part.map((row) => shown(row, numbers)));
      count.textContent = long && found.length
        ? `rows ${from + 1} to ${from + part.length} of ${found.length}` + (found.length < rows.length ? ` (all: ${rows.length})` : "")
        : `${found.length} of ${rows.length} rows`;
      before.disabled = page === 0;
      after.disabled = page === last;
      if (tell) said.textContent = `${tell} ${count.textContent}`;
    };

    heads.forEach((head, at) => {
      const button = element("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        // Numbers begin with the highest: that is what one looks for.
        down = column === at ? !down : numbers[at];
        column = at;
        page = 0;
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        draw(`sorted by ${button.textContent}, ${down ? "descending" : "ascending"}:`);
      });
    });
    if (rows.length >= FEW) {
      const tools = element("div", { class: "tools" }), label = element("label", {}, "Filter ");
      const input = element("input", { type: "search", "aria-label": `Filter: ${caption}`, placeholder: "words, all of them", "aria-controls": table.id });
      label.append(input);
      tools.append(label, count);
      if (long && rows.length > PAGE) tools.append(before, after);
      input.addEventListener("input", () => {
        words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        page = 0;
        draw("filtered:");
      });
      before.addEventListener("click", () => { page -= 1; draw("page:"); });
      after.addEventListener("click", () => { page += 1; draw("page:"); });
      box.prepend(tools);
    }
    draw("");
    if (long) {
      addEventListener("beforeprint", () => draw("", PRINTED));
      addEventListener("afterprint", () => draw(""));
    }
  });

  const root = document.documentElement, theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  const keep = (value) => { try { localStorage.setItem("agelab-theme", value); } catch { /* a reader may forbid it */ } };
  try {
    const kept = localStorage.getItem("agelab-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch { /* as above */ }
  theme.hidden = false;
  label();
  system.addEventListener("change", label);
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep(root.dataset.theme);
    label();
  });

  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = said.textContent = "Copied";
      } catch { // no clipboard for files in some browsers: the text is marked, to be copied by hand
        getSelection().selectAllChildren(code);
        said.textContent = "Selected: copy it";
      }
    });
  });
})();
