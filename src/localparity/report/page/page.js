const short = (number) => String(Number(number.toPrecision(6)));
const inRange = (model, fraction) => model.range[0] + fraction * (model.range[1] - model.range[0]);
const isolated = (name) => "\u2068" + name + "\u2069";

function show(id, fraction) {
  const place = element(id);
  place.value = String(fraction);
  place.title = String(fraction);
  place.textContent = percent(fraction);
}

/* The state is what the controls say. */
const model = () => data.models[Number(element("model").value)];
const epsilonPlace = () => Number(element("epsilon").value);
const thresholdPlace = () => Number(element("threshold").value);

function viewsOf(one) {
  const labels = one.labels[element("criterion").value];
  const pair = Number(element("pair").value);
  const wanted = pair < 0 ? null : JSON.stringify(model().pairs[pair]);
  const isWanted = one.pairs.map((names) => wanted === null || JSON.stringify(names) === wanted);
  return one.views.filter((view) => labels.includes(view.label) && isWanted[view.pair]);
}

function worst(views, place) {
  let found = views[0];
  for (const view of views) if (unpack(view.mcdp)[place] > unpack(found.mcdp)[place]) found = view;
  return found;
}

const among = (view) => (view.label === null ? "" : ` among people with label ${view.label}`);

/* The library's words: a view has the places of its own among all of the page, three bytes each */
function word(places, place) {
  const [low, middle, high] = [0, 1, 2].map((byte) => atob(places.slice(4 * place, 4 * place + 4)).charCodeAt(byte));
  return data.words[low + 256 * middle + 65536 * high];
}

/* The thresholds of a window, as they are told; the run of whole numbers ends before the next one */
function endsOf(view, place) {
  const [low, high] = [view.lows, view.highs].map((places) => Number(word(places, place).replaceAll(",", "")));
  return { low, high: view.whole ? high + 1 : high };
}

function tellWindow(chosen, view, place) {
  const ends = [word(view.lows, place), word(view.highs, place)];
  const run = data.runs[Number(view.forms[place])].replace("{}", ends[0]).replace("{}", ends[1]);
  const parts = data.sentences[view.sentences[view.sign[place]]].map((part, i) => (i % 2
    ? Object.assign(document.createElement("bdi"), { textContent: chosen.pairs[view.pair][part] ?? "" })
    : part.replace("{run}", run).replace("{points}", word(view.points, place))));
  element("window").replaceChildren(...parts);
}

/* Who is selected: people above the threshold, or at or below it where a higher score is worse */
function tellRates(chosen, view) {
  const worse = chosen.higher_is === "worse";
  for (const place of document.querySelectorAll(".beyond")) place.textContent = worse ? "at or below" : "above";
  const above = view.sides.map((side) => unpack(chosen.sides[side].rates)[thresholdPlace()]);
  const [a, b] = above.map((rate) => (worse ? 1 - rate : rate));
  show("rate-a", a);
  show("rate-b", b);
  show("difference", Math.abs(a - b));
  const ratio = Math.max(a, b) > 0 ? Math.min(a, b) / Math.max(a, b) : null;
  element("ratio").value = ratio === null ? "" : String(ratio);
  element("ratio").textContent = ratio === null ? "-" : ratio.toFixed(3);
  return [a, b];
}

/* How far what is drawn in steps of several people may be from what every row says */
function tellOff(chosen, view) {
  const off = view.sides.map((side) => chosen.sides[side].off);
  const points = (fraction) => (Math.ceil(1000 * fraction - 1e-6) / 10).toFixed(1);
  const exact = chosen.findings.map((found) => short(found.epsilon)).join(", ");
  element("off").textContent = Math.max(...off) === 0 ? "" :
    `Curves are drawn in steps of several people, so that nobody's score can be read off: a share is within ${points(Math.max(...off))} points of the exact one, ` +
    `and MCDP within ${points(off[0] + off[1])} points. At epsilon ${exact}, MCDP is exact.`;
}

function tellNames(chosen, view) {
  const names = chosen.pairs[view.pair];
  for (const place of document.querySelectorAll(".first-name")) place.textContent = names[0];
  for (const place of document.querySelectorAll(".second-name")) place.textContent = names[1];
  for (const place of document.querySelectorAll(".among")) place.textContent = among(view);
}

/* A curve: the rates at all thresholds, and the pair's own extremes between them. */
function curveOf(chosen, view) {
  const point = (x, a, b) => {
    const gap = a - b;
    return { x, a, b, gap, low: Math.max(-1, gap - view.radius), high: Math.min(1, gap + view.radius) };
  };
  const [first, second] = view.sides.map((side) => unpack(chosen.sides[side].rates));
  const [a, b] = [unpack(view.a), unpack(view.b)];
  const own = Array.from(unpack(view.x), (fraction, i) => point(inRange(chosen, fraction), a[i], b[i]));
  return chosen.thresholds.map((x, i) => point(x, 1 - first[i], 1 - second[i])).concat(own).sort((p, q) => p.x - q.x);
}

let drawn = null, curve = null;
function drawCurve(chosen, view) {
  if (drawn === view) return;
  drawn = view;
  curve = curveOf(chosen, view);
  const range = chosen.range.map((x) => ({ x }));
  put("cdfs", { curve, range }, true);
  put("gap", { curve, range, zero: [{ y: 0 }] }, true);
}

function drawPlace(chosen, view, place) {
  const value = unpack(view.mcdp)[place];
  const sign = view.sign[place];
  const window = sign === "0" ? [] : [endsOf(view, place)];
  const threshold = [{ x: chosen.thresholds[thresholdPlace()] }];
  for (const mark of document.querySelectorAll(".of-window")) mark.hidden = sign === "0";
  const levels = { "+": [value], "-": [-value], x: [value, -value], 0: [] }[sign];
  put("cdfs", { window, threshold });
  put("gap", { window, threshold, level: levels.map((y) => ({ y })) });
  put("profiles", { at_epsilon: [{ epsilon: data.epsilons[place] }] });
}

const modelsShown = () => data.models.filter((one) => one.criteria.includes(element("criterion").value) && viewsOf(one).length);

function drawProfiles() {
  const shown = modelsShown();
  const keys = shown.map((one) => {
    const key = Object.assign(document.createElement("span"), { className: "key" });
    const number = data.models.indexOf(one);
    key.style.borderTop = `3px ${number ? "dashed" : "solid"} var(--model-${number % 6})`;
    const item = document.createElement("li");
    item.append(key, Object.assign(document.createElement("bdi"), { textContent: one.name }));
    return item;
  });
  element("model-keys").replaceChildren(...(data.models.length > 1 ? keys : []));
  const profiles = shown.flatMap((one) => {
    const views = viewsOf(one);
    return data.epsilons.map((epsilon, place) => ({ epsilon, mcdp: unpack(worst(views, place).mcdp)[place], model: one.name }));
  });
  const whole = (one) => (element("pair").value === "-1" || one.pairs.length === 1) && one.criterion === element("criterion").value;
  const findings = shown.filter((one) => one.whole && whole(one)).flatMap((one) => one.findings.map((found) => ({ ...found, model: one.name })));
  element("of-findings").hidden = !findings.length;
  element("of-parity").hidden = !findings.some((found) => found.parity !== null);
  put("profiles", { profiles, findings }, true);
}

/* What a screen reader is told */
function describe(chosen, view, place, rates) {
  const names = chosen.pairs[view.pair];
  const epsilon = short(data.epsilons[place]), threshold = short(chosen.thresholds[thresholdPlace()]);
  const value = percent(unpack(view.mcdp)[place]);
  element("epsilon-shown").textContent = epsilon;
  if (document.activeElement !== element("typed")) element("typed").value = threshold;
  element("epsilon").setAttribute("aria-valuetext", `epsilon ${epsilon}: MCDP ${value}`);
  element("threshold").setAttribute("aria-valuetext",
    `threshold ${threshold}: ${percent(rates[0])} against ${percent(rates[1])} selected, a difference of ${percent(Math.abs(rates[0] - rates[1]))}`);
  const pair = names.map(isolated).join(" and ") + among(view);
  const whose = data.models.length > 1 ? `${isolated(chosen.name)}; ` : "";
  element("chosen").textContent = `Shown: ${whose}${pair}; ${data.criteria[element("criterion").value]}; epsilon ${epsilon}; threshold ${threshold}.`;
  element("cdfs").setAttribute("aria-label", `Cumulative distributions of ${pair}. ${element("window").textContent}`);
  element("gap").setAttribute("aria-label", `Gap between ${pair}. MCDP at epsilon ${epsilon} is ${value}.`);
  element("profiles").setAttribute("aria-label", `MCDP of ${pair} falls from ${percent(unpack(view.mcdp)[0])} at epsilon 0 to ${value} at epsilon ${epsilon}.`);
}

function update() {
  const chosen = model(), place = epsilonPlace();
  const view = worst(viewsOf(chosen), place);
  show("mcdp", unpack(view.mcdp)[place]);
  tellWindow(chosen, view, place);
  tellNames(chosen, view);
  tellOff(chosen, view);
  describe(chosen, view, place, tellRates(chosen, view));
  drawCurve(chosen, view);
  drawPlace(chosen, view, place);
}

/* Hover: the nearest known point of the curve, in both charts at once, with its exact values */
function hoverScore(chart, event) {
  const chosen = model();
  const { x, a, b } = curve[nearest(curve.map((point) => point.x), valueAt(chart, event))];
  for (const name of ["cdfs", "gap"]) put(name, { pointer: [{ x }] });
  const names = chosen.pairs[drawn.pair].map(isolated);
  tip(event, [`threshold ${short(x)}`, `${names[0]} at or below: ${percent(a, 4)}`, `${names[1]} at or below: ${percent(b, 4)}`, `gap ${percent(a - b, 4)}`]);
}

function hoverEpsilon(chart, event) {
  const place = nearest(data.epsilons, valueAt(chart, event));
  const valueOf = (one) => unpack(worst(viewsOf(one), place).mcdp)[place];
  tip(event, [`epsilon ${short(data.epsilons[place])}`, ...modelsShown().map((one) => `${isolated(one.name)}: ${percent(valueOf(one), 4)}`)]);
}

function hoverEnds() {
  element("tip").hidden = true;
  for (const name of ["cdfs", "gap"]) put(name, { pointer: [] });
}

/* Controls */
function fill(id, options, chosen) {
  element(id).replaceChildren(...options.map(([value, text]) => {
    const option = Object.assign(document.createElement("option"), { value, textContent: text });
    option.selected = value === chosen;
    return option;
  }));
}

function chooseModel() {
  const chosen = model();
  const at = chosen.threshold ?? (chosen.range[0] + chosen.range[1]) / 2;
  fill("criterion", chosen.criteria.map((name) => [name, data.criteria[name]]), chosen.criterion);
  const pairs = chosen.pairs.map((names, i) => [String(i), names.map(isolated).join(" and ")]);
  fill("pair", pairs.length > 1 ? [["-1", chosen.whole ? "The worst pair" : "The worst of these pairs"], ...pairs] : pairs, pairs.length > 1 ? String(chosen.start) : "0");
  element("threshold").max = chosen.thresholds.length - 1;
  element("threshold").value = nearest(chosen.thresholds, at);
}

/* A threshold that is typed: the nearest that the page has */
function typeThreshold() {
  const chosen = model(), typed = element("typed"), told = element("typed-note");
  const wanted = Number(typed.value.trim().replace(",", "."));
  const wrong = typed.value.trim() === "" || !Number.isFinite(wanted) || wanted < chosen.range[0] || wanted > chosen.range[1];
  typed.setAttribute("aria-invalid", String(wrong));
  if (wrong) {
    told.textContent = `Type a number from ${short(chosen.range[0])} to ${short(chosen.range[1])}.`;
    return;
  }
  const place = nearest(chosen.thresholds, wanted);
  element("threshold").value = place;
  const off = Math.abs(chosen.thresholds[place] - wanted) > 1e-9 * (chosen.range[1] - chosen.range[0]);
  told.textContent = off ? `The nearest threshold on this page is ${short(chosen.thresholds[place])}.` : "";
  update();
}

function slideThreshold() {
  element("typed-note").textContent = "";
  element("typed").setAttribute("aria-invalid", "false");
  update();
}

async function drawAll() {
  for (const [name, spec] of Object.entries(data.charts)) {
    await embed(name, spec, name === "profiles" ? hoverEpsilon : hoverScore, hoverEnds);
  }
  drawn = null;
  update();
  drawProfiles();
  document.documentElement.dataset.charts = "drawn";
}

/* Charts take most of the time, and a reader comes to them last: they are drawn when they are near, or for paper. */
let drawing = null;
function drawCharts() {
  drawing ??= drawAll();
}

function start() {
  fill("model", data.models.map((one, i) => [String(i), one.name]), "0");
  element("epsilon").max = data.epsilons.length - 1;
  element("epsilon").value = data.epsilons.indexOf(data.shown_epsilon);
  chooseModel();
  element("interactive").hidden = false;
  element("model").addEventListener("change", () => { chooseModel(); update(); drawProfiles(); });
  for (const id of ["criterion", "pair"]) element(id).addEventListener("change", () => { update(); drawProfiles(); });
  element("epsilon").addEventListener("input", update);
  element("threshold").addEventListener("input", slideThreshold);
  element("typed").addEventListener("input", typeThreshold);
  element("typed").addEventListener("blur", update);
  update();
  drawProfiles();
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && drawCharts(), { rootMargin: "100%" })
    .observe(element("explore"));
  addEventListener("beforeprint", drawCharts);
}

if (data.models.length) start();
document.documentElement.dataset.ready = "yes";
