const data = JSON.parse(document.getElementById("page-data").textContent);

/* Fractions in [0, 1] come as base64 of 32-bit whole numbers. */
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return Float64Array.from(new Uint32Array(bytes.buffer), (whole) => whole / 4294967295);
}
const percent = (fraction, digits = 0) => `${(100 * fraction).toFixed(digits)}%`;
const short = (number) => String(Number(number.toPrecision(6)));

/* The place of the nearest of sorted numbers */
function nearest(sorted, value) {
  const after = sorted.findIndex((number) => number >= value);
  if (after <= 0) return after < 0 ? sorted.length - 1 : 0;
  return value - sorted[after - 1] <= sorted[after] - value ? after - 1 : after;
}

/* What is chosen stands in the address, so that it can be shared */
const state = new URLSearchParams(location.hash.slice(1));

/* A slider, a field and a drawing that choose one of sorted numbers together */
function chooser(root, { name, numbers, range, at, textOf, read = Number, show }) {
  const slider = root.querySelector("[type=range]"), field = root.querySelector("[type=text]"), plot = root.querySelector(".plot");
  function choose(place, typed = false) {
    slider.value = place;
    slider.setAttribute("aria-valuetext", show(place));
    if (!typed) field.value = textOf(place);
    field.removeAttribute("aria-invalid");
  }
  function type(text) {
    const number = text.trim() === "" ? NaN : read(text.trim().replace(",", "."));
    if (number >= numbers[0] && number <= numbers.at(-1)) choose(nearest(numbers, number), true);
    else field.setAttribute("aria-invalid", "true");
  }
  const again = () => choose(Number(slider.value));
  function settle() {
    again();
    state.set(name, field.value);
    history.replaceState(null, "", `#${state}`);
  }
  function drag(event) {
    const box = plot.getBoundingClientRect(), [first, last] = range;
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    choose(nearest(numbers, first + share * (last - first)));
  }
  slider.max = numbers.length - 1;
  slider.addEventListener("input", again);
  slider.addEventListener("change", settle);
  field.addEventListener("input", () => type(field.value));
  field.addEventListener("change", settle);
  plot.addEventListener("pointerdown", (event) => { plot.setPointerCapture(event.pointerId); drag(event); });
  plot.addEventListener("pointermove", (event) => event.buttons && drag(event));
  plot.addEventListener("pointerup", settle);
  root.querySelector(".control").hidden = false;
  slider.value = at;
  if (state.has(name)) type(state.get(name));
  again();
  root.addEventListener("toggle", again);
  addEventListener("resize", again);
}

/* A model: the shares of its groups above the cutoff */
function startModel(model, number) {
  const root = document.getElementById(`model-${number}`);
  const shares = model.shares.map(unpack), [low, high] = model.range;
  function showGroups(place) {
    for (const row of root.querySelectorAll("[data-key]")) {
      const group = Number(row.dataset.key), share = shares[group][place];
      const off = place === model.at && model.exact[group] ? 0 : model.off[group], radius = model.radii[group] + off;
      const value = row.querySelector("[data-value]"), bar = row.querySelector(".bar");
      const [from, to] = [Math.max(0, share - radius), Math.min(1, share + radius)];
      row.querySelector(".dot").style.left = `${100 * share}%`;
      if (bar) Object.assign(bar.style, { left: `${100 * from}%`, right: `${100 * (1 - to)}%` });
      Object.assign(value.dataset, bar ? { value: share, low: from, high: to } : { value: share });
      /* Where few people are on one side of a cutoff, the share is known to lie in a range. */
      const [least, most] = [Math.floor(100 * Math.max(0, share - off)), Math.ceil(100 * Math.min(1, share + off))];
      value.textContent = off > 0.005 ? `${least} to ${most}%` : percent(share);
    }
  }
  const put = (element, attributes) => Object.entries(attributes).forEach(([key, value]) => element?.setAttribute(key, value));
  function showPair(place) {
    const x = (model.cutoffs[place] - low) / (high - low), rates = model.sides.map((group) => shares[group][place]);
    const [top, bottom] = [Math.max(...rates), Math.min(...rates)], apart = Math.round(100 * (top - bottom));
    /* With a decimal where whole numbers would not agree with each other, or hide on which side of the bound they are. */
    const near = model.bound !== null && apart === Math.round(100 * model.bound) && top - bottom !== model.bound;
    const digits = !near && Math.round(100 * top) - Math.round(100 * bottom) === apart ? 0 : 1;
    const texts = rates.map((rate) => percent(rate, digits));
    const at = (y) => ({ x: `${100 * x}%`, y: `${100 * (1 - y)}%` });
    put(root.querySelector(".bracket"), { x1: at(0).x, x2: at(0).x, y1: at(bottom).y, y2: at(top).y });
    /* Curves fall from left to right: there is room on the right above them, and on the left below. */
    const plot = root.querySelector(".plot"), width = plot.clientWidth, tall = plot.clientHeight, here = x * width;
    const pixel = (cutoff) => ((cutoff - low) / (high - low)) * width;
    const before = (place) => Math.max(0, model.cutoffs.findLastIndex((cutoff) => pixel(cutoff) <= place));
    const after = (place) => Math.min(model.cutoffs.findLastIndex((cutoff) => pixel(cutoff) < place) + 1, model.cutoffs.length - 1);
    const upperSide = rates[0] >= rates[1] ? 0 : 1;
    const curve = (side, place) => shares[model.sides[side]][place];
    function write(kind, text, spot) {
      const element = plot.querySelector(`text.${kind}`), inside = element?.querySelector("tspan");
      if (!element || !width) return [0, 0, 0];
      inside.textContent = text;
      const [start, y, lift] = spot(inside.getComputedTextLength());
      put(element, at(y));
      put(inside, { dx: start - here, dy: `${lift}em` });
      element.classList.remove("end");
      return [start, y, lift];
    }
    const over = (long) => {
      const start = Math.max(0, Math.min(here + 10, width - long));
      return [start, start > here ? top : Math.max(curve(0, before(start)), curve(1, before(start))), -0.4];
    };
    const under = (long) => {
      /* On the far left there is room between the lines, if anywhere. */
      const start = Math.max(0, here - 10 - long), end = start + long, beside = here + 10;
      const between = [before(beside), after(beside + long)].every((place) => curve(upperSide, place) > bottom + 24 / tall);
      if (here < 10 + long && beside + long <= width && (top - bottom) * tall > 64 && between) return [beside, bottom, -0.4];
      const y = end < here ? bottom : Math.min(curve(0, after(end)), curve(1, after(end)));
      return [start, Math.max(y, 20 / tall), 1];
    };
    const names = model.sides.map((_, side) => `${model.names[side]} ${texts[side]}`), kinds = ["first", "second"];
    const [upperStart, upperY, upperLift] = write(kinds[upperSide], names[upperSide], over);
    write(kinds[1 - upperSide], names[1 - upperSide], under);
    /* A line more, above the upper name: where the lines leave no room beside the bracket. */
    const above = (long, lines = 1.25) => [Math.max(0, Math.min(upperStart, width - long)), upperY, upperLift - lines];
    const size = near ? `${(100 * (top - bottom)).toFixed(1)} points` : `${apart} point${apart === 1 ? "" : "s"}`;
    write("points", top > bottom ? size : "", (long) => {
      const middle = (top + bottom) / 2, room = 12 / tall, right = here + 10, left = here - 10 - long;
      const clear = (place) => curve(upperSide, place) > middle + room && curve(1 - upperSide, place) < middle - room;
      if (right + long <= width && [before(right), after(right + long)].every(clear)) return [right, middle, 0.35];
      if (left >= 0 && [before(left), after(here)].every(clear)) return [left, middle, 0.35];
      return above(long);
    });
    write("direct", "shaded: within chance", (long) => {
      const [start, y, lift] = under(long);
      return upperStart + long > width ? [start, y, lift + 1.5] : above(long, 1.7);
    });
    const output = root.querySelector("output"), ratio = top > 0 ? bottom / top : NaN;
    Object.assign(output.dataset, { first: rates[0], second: rates[1], ratio });
    output.textContent = `${texts[0]} against ${texts[1]}${top > 0 ? `, ratio ${ratio.toFixed(2)}` : ""}`;
  }
  chooser(root, {
    name: number ? `cutoff-${number}` : "cutoff",
    numbers: model.cutoffs,
    range: model.range,
    at: model.at,
    textOf: (place) => short(model.cutoffs[place]),
    show(place) {
      showPair(place);
      showGroups(place);
      root.querySelector(".at").textContent = short(model.cutoffs[place]);
      return `cutoff ${short(model.cutoffs[place])}: ${root.querySelector("output").textContent}`;
    },
  });
}

/* A monitor: one period */
function startMonitor(monitor) {
  const root = document.getElementById("chart");
  const [low, estimate, high, alarm] = [monitor.low, monitor.estimate, monitor.high, monitor.alarm_estimate].map(unpack);
  const numbers = monitor.periods.map((_, place) => place), last = numbers.length - 1;
  const line = root.querySelector(".bracket");
  function textOf(place) {
    const over = monitor.alarm_periods[place], number = monitor.rows[place];
    const rows = number === null ? "" : `${number.toLocaleString("en-US")} people`;
    if (place in monitor.missing) return `${rows && `${rows}, `}nothing to compare: ${monitor.missing[place]}`;
    const value = `${monitor.approximate[place] ? "about " : ""}${percent(estimate[place], 2)} (${percent(low[place], 2)} to ${percent(high[place], 2)}), ${rows}`;
    return over ? `${value}; alarm over ${over} ${monitor.every}${over === 1 ? "" : "s"}: ${percent(alarm[place], 2)}` : value;
  }
  chooser(root, {
    name: monitor.every,
    numbers,
    at: last,
    range: [-0.5, last + 0.5],
    textOf: (place) => monitor.periods[place],
    read: (text) => monitor.periods.indexOf(text),
    show(place) {
      const x = `${(100 * (place + 0.5)) / (last + 1)}%`;
      for (const [name, value] of [["x1", x], ["x2", x], ["y1", "0%"], ["y2", "100%"]]) line.setAttribute(name, value);
      Object.assign(root.querySelector("output").dataset, { value: estimate[place] });
      root.querySelector("output").textContent = textOf(place);
      document.getElementById("detail").textContent = monitor.windows[place] ?? "";
      return `${monitor.periods[place]}: ${textOf(place)}`;
    },
  });
}

/* Tables */
function sortBy(header) {
  const numeric = header.classList.contains("number"), sorted = header.getAttribute("aria-sort");
  const down = sorted ? sorted === "ascending" : numeric;
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = header.closest("table").tBodies[0];
  const keyOf = (row) => {
    const cell = row.children[header.cellIndex];
    return numeric ? parseFloat(cell.dataset.value ?? cell.textContent) || 0 : cell.textContent;
  };
  const rows = Array.from(body.rows, (row) => [keyOf(row), row]);
  rows.sort(([a], [b]) => (down ? -1 : 1) * (numeric ? a - b : a.localeCompare(b)));
  body.append(...rows.map(([, row]) => row));
}
for (const button of document.querySelectorAll("thead button")) button.addEventListener("click", () => sortBy(button.closest("th")));

/* A word's meaning, beside it; Escape or a click elsewhere closes it */
const tip = document.getElementById("tip");
for (const term of document.querySelectorAll(".term")) {
  term.addEventListener("click", (event) => {
    event.preventDefault();
    tip.textContent = document.getElementById(term.hash.slice(1)).nextElementSibling.textContent;
    tip.showPopover();
    const box = term.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.bottom + 6}px`;
  });
}

/* Paper has no folds */
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open], .numbers)")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });

(data.models ?? []).forEach((model, number) => model.sides.length && startModel(model, number));
if (data.monitor) startMonitor(data.monitor);
document.documentElement.dataset.ready = "yes";
