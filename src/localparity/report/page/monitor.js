const last = data.periods.length - 1;
const times = data.periods.map((period) => Date.parse(`${period}${period.includes("T") ? "" : "T00"}:00Z`));
const [low, estimate, high, expected] = [data.low, data.estimate, data.high, data.expected].map(unpack);
const [alarmMcdp, alarmLow] = [data.alarm_mcdp, data.alarm_low].map(unpack);
const isKnown = (place) => !(place in data.missing);
const hasAlarm = (place) => data.alarm_periods[place] > 0;
const chosen = () => Number(element("period").value);
const firstShown = () => Math.max(0, last + 1 - Number(element("shown").value));
const howMany = (number) => `${number.toLocaleString("en-US")} ${data.every}${number === 1 ? "" : "s"}`;
const mcdpText = (place) => `${data.approximate[place] ? "about " : ""}${percent(estimate[place])}`;
const intervalText = (place) => `${percent(low[place])} to ${percent(high[place])}`;

/* A period in words */
function facts(place) {
  const found = [["Rows", data.rows[place].toLocaleString("en-US")]];
  if (!isKnown(place)) found.push(["Nothing to compare", data.missing[place]]);
  else {
    found.push([`${Number((100 * data.confidence).toPrecision(6))}% interval`, intervalText(place)], ["Expected under parity", percent(expected[place])]);
    const groups = Object.entries(data.details[place]?.groups ?? {});
    if (groups.length) found.push(["Groups", groups.map(([name, rows]) => `\u2068${name}\u2069 ${rows.toLocaleString("en-US")}`).join(", ")]);
  }
  if (hasAlarm(place)) {
    const periods = data.alarm_periods[place];
    const where = periods === 1 ? `this ${data.every}` : `the last ${howMany(periods)}, from ${data.periods[place - periods + 1]}`;
    found.push(["Alarm", `over ${where}: MCDP ${data.alarm_approximate[place] ? "about " : ""}${percent(alarmMcdp[place])}, at least ${percent(alarmLow[place])}`]);
  } else if (data.max_mcdp !== null) found.push(["Alarm", "none"]);
  return found;
}

function tellPeriod() {
  const place = chosen(), told = facts(place);
  const value = isKnown(place) ? mcdpText(place) : "-";
  element("period-shown").textContent = data.periods[place];
  element("detail-heading").textContent = data.periods[place];
  element("mcdp").value = isKnown(place) ? String(estimate[place]) : "";
  element("mcdp").textContent = value;
  element("detail").replaceChildren(...told.flatMap(([name, text]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: text }),
  ]));
  element("detail-window").textContent = data.details[place]?.window ?? "";
  element("chosen").textContent = `Shown: ${data.periods[place]}, MCDP ${value}.`;
  element("period").setAttribute("aria-valuetext", `${data.periods[place]}: MCDP ${value}${hasAlarm(place) ? ", alarm" : ""}`);
  put("over_time", { chosen: place < firstShown() ? [] : [{ time: times[place] }] });
}

/* The chart: a period with nothing to compare leaves a gap, one between two of these is a point */
function drawPeriods() {
  const first = firstShown(), periods = [], alone = [], stretches = [];
  for (let place = first; place <= last; place += 1) {
    const known = isKnown(place);
    const row = { time: times[place], mcdp: known ? estimate[place] : null, low: known ? low[place] : null, high: known ? high[place] : null };
    periods.push(row);
    const hasNeighbour = (place > first && isKnown(place - 1)) || (place < last && isKnown(place + 1));
    if (known && !hasNeighbour) alone.push(row);
    if (!hasAlarm(place)) continue;
    if (place > first && hasAlarm(place - 1)) stretches.at(-1).end = times[place];
    else stretches.push({ time: times[place], end: times[place] });
  }
  put("over_time", { periods, alone, stretches, bound: data.max_mcdp === null ? [] : [{ mcdp: data.max_mcdp }] }, true);
  const values = periods.flatMap((row) => (row.mcdp === null ? [] : [row.mcdp]));
  const range = values.length ? `between ${percent(Math.min(...values))} and ${percent(Math.max(...values))}` : "with nothing to compare";
  element("over_time").setAttribute("aria-label", `MCDP from ${data.periods[first]} to ${data.periods[last]}, ${range}.`);
}

const placeAt = (chart, event) => nearest(times, valueAt(chart, event));
function hoverTime(chart, event) {
  const place = Math.max(firstShown(), placeAt(chart, event));
  const value = isKnown(place) ? [`MCDP ${mcdpText(place)}`, intervalText(place)] : ["nothing to compare"];
  tip(event, [data.periods[place], ...value, ...(hasAlarm(place) ? ["alarm"] : [])]);
}

/* Controls */
function choose(place) {
  element("period").value = place;
  tellPeriod();
}

function walk(step) {
  let place = chosen() + step;
  while (place >= 0 && place <= last && !hasAlarm(place)) place += step;
  if (place < 0 || place > last) return;
  if (place < firstShown()) {
    element("shown").value = String(last + 1);
    drawPeriods();
  }
  choose(place);
}

async function drawCharts() {
  await embed("over_time", data.charts.over_time, hoverTime, () => { element("tip").hidden = true; });
  element("over_time").addEventListener("click", (event) => choose(placeAt("over_time", event)));
  drawPeriods();
  tellPeriod();
  document.documentElement.dataset.charts = "drawn";
}

const lengths = [30, 90, 365, 1000].filter((length) => length <= last);
element("shown").replaceChildren(...[last + 1, ...lengths.reverse()].map((length) => Object.assign(document.createElement("option"), {
  value: length,
  textContent: length > last ? `All ${howMany(length)}` : `The newest ${length.toLocaleString("en-US")}`,
})));
element("period").max = last;
element("period").value = last;
for (const id of ["previous-alarm", "next-alarm"]) element(id).disabled = !data.alarm_periods.some(Boolean);
element("interactive").hidden = false;
element("period").addEventListener("input", tellPeriod);
element("shown").addEventListener("change", () => { drawPeriods(); tellPeriod(); });
element("previous-alarm").addEventListener("click", () => walk(-1));
element("next-alarm").addEventListener("click", () => walk(1));
tellPeriod();
drawCharts();
document.documentElement.dataset.ready = "yes";
