const data = JSON.parse(document.getElementById("page-data").textContent);
const element = (id) => document.getElementById(id);
const charts = {};
const most = 4294967295;

/* Numbers: fractions in [0, 1] come as base64 of 32-bit whole numbers and are unpacked when first looked at. */
const unpacked = new Map();
function unpack(text) {
  if (!unpacked.has(text)) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    unpacked.set(text, Float64Array.from(new Uint32Array(bytes.buffer), (whole) => whole / most));
  }
  return unpacked.get(text);
}
const percent = (fraction, digits = 2) => (100 * fraction).toFixed(digits) + "%";

/* Charts */
function put(chart, rows, axesChange = false) {
  if (!charts[chart]) return;
  for (const [name, values] of Object.entries(rows)) charts[chart].data(name, values);
  if (axesChange) charts[chart].resize();
  charts[chart].runAsync();
}

/* The place of the nearest of sorted numbers */
function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle; else low = middle;
  }
  return value - sorted[low] <= sorted[high] - value ? low : high;
}

/* The value on the horizontal axis of a chart under the pointer */
function valueAt(chart, event) {
  const box = element(chart).querySelector("svg").getBoundingClientRect();
  return charts[chart].scale("x").invert(event.clientX - box.left - charts[chart].origin()[0]);
}

function tip(event, lines) {
  const place = element("tip");
  place.textContent = lines.join("\n");
  place.hidden = false;
  const left = Math.min(event.clientX + 14, innerWidth - place.offsetWidth - 8);
  place.style.left = `${Math.max(8, left)}px`;
  place.style.top = `${event.clientY - place.offsetHeight - 14}px`;
}

/* Tables */
function sortBy(header) {
  const down = header.getAttribute("aria-sort") !== "descending" && header.classList.contains("number")
    || header.getAttribute("aria-sort") === "ascending";
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = header.closest("table").tBodies[0];
  const numeric = header.classList.contains("number");
  const keyOf = (row) => {
    const cell = row.children[header.cellIndex];
    return numeric ? parseFloat(cell.dataset.value ?? cell.textContent) : cell.textContent;
  };
  const before = (a, b) => (numeric ? (a || 0) - (b || 0) : a.localeCompare(b));
  const rows = Array.from(body.rows, (row) => [keyOf(row), row]);
  rows.sort((a, b) => (down ? before(b[0], a[0]) : before(a[0], b[0])));
  body.append(...rows.map(([, row]) => row));
}

for (const button of document.querySelectorAll("thead button")) button.addEventListener("click", () => sortBy(button.closest("th")));

async function embed(name, spec, hover, hoverEnds) {
  const options = { actions: false, renderer: "svg", ast: true, tooltip: false, logLevel: 1 };
  const { view } = await vegaEmbed(element(name), spec, options);
  charts[name] = view;
  element(name).addEventListener("pointermove", (event) => hover(name, event));
  element(name).addEventListener("pointerleave", hoverEnds);
}
