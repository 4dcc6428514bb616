const last = data.periods.length - 1;
const [low, estimate, high, expected] = [data.low, data.estimate, data.high, data.expected].map(unpack);
const [alarmMcdp, alarmLow] = [data.alarm_mcdp, data.alarm_low].map(unpack);
const isKnown = (index) => !(index in data.missing);
const hasAlarm = (index) => data.alarm_periods[index] > 0;
const chosen = () => Number(element("period").value);
const howMany = (number) => `${number.toLocaleString("en-US")} ${data.every}${number === 1 ? "" : "s"}`;
const mcdpText = (index) => `${data.approximate[index] ? "about " : ""}${percent(estimate[index])}`;
const intervalText = (index) => `${percent(low[index])} to ${percent(high[index])}`;

/* A period in words */
function facts(index) {
  const lines = [["Rows", data.rows[index].toLocaleString("en-US")]];
  if (!isKnown(index)) lines.push(["Nothing to compare", data.missing[index]]);
  else {
    lines.push([`${Number((100 * data.confidence).toPrecision(6))}% interval`, intervalText(index)], ["Expected under parity", percent(expected[index])]);
    const groups = Object.entries(data.details[index]?.groups ?? {});
    if (groups.length) lines.push(["Groups", groups.map(([name, rows]) => `\u2068${name}\u2069 ${rows.toLocaleString("en-US")}`).join(", ")]);
  }
  if (hasAlarm(index)) {
    const periods = data.alarm_periods[index];
    const where = periods === 1 ? `this ${data.every}` : `the last ${howMany(periods)}, from ${data.periods[index - periods + 1]}`;
    lines.push(["Alarm", `over ${where}: MCDP ${data.alarm_approximate[index] ? "about " : ""}${percent(alarmMcdp[index])}, at least ${percent(alarmLow[index])}`]);
  } else if (data.max_mcdp !== null) lines.push(["Alarm", "none"]);
  return lines;
}

function tellPeriod() {
  const index = chosen(), lines = facts(index);
  const value = isKnown(index) ? mcdpText(index) : "-";
  element("period-shown").textContent = data.periods[index];
  element("detail-heading").textContent = data.periods[index];
  element("mcdp").value = isKnown(index) ? String(estimate[index]) : "";
  element("mcdp").textContent = value;
  element("detail").replaceChildren(...lines.flatMap(([name, text]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: text }),
  ]));
  element("detail-window").textContent = data.details[index]?.window ?? "";
  element("chosen").textContent = `Shown: ${data.periods[index]}, MCDP ${value}.`;
  element("period").setAttribute("aria-valuetext", `${data.periods[index]}: MCDP ${value}${hasAlarm(index) ? ", alarm" : ""}`);
  const x = left + (Math.floor(index / gathered) + 0.5) * step;
  for (const [name, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) element("chosen-line").setAttribute(name, value);
}

/* The picture: of several periods at a place, the one with the largest MCDP */
const { left, right, gathered } = data.axis;
const places = Math.ceil((last + 1) / gathered), step = (right - left) / places;
function indexAt(event) {
  const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(element("picture").getScreenCTM().inverse());
  const first = gathered * Math.min(places - 1, Math.max(0, Math.floor((x - left) / step)));
  let best = first;
  for (let index = first; index <= Math.min(last, first + gathered - 1); index += 1) if (estimate[index] > estimate[best]) best = index;
  return best;
}

function hoverTime(event) {
  const index = indexAt(event);
  const value = isKnown(index) ? [`MCDP ${mcdpText(index)}`, intervalText(index)] : ["nothing to compare"];
  tip(event, [data.periods[index], ...value, ...(hasAlarm(index) ? ["alarm"] : [])]);
}

/* Controls */
function choose(index) {
  element("period").value = index;
  tellPeriod();
}

function walk(direction) {
  let index = chosen() + direction;
  while (index >= 0 && index <= last && !hasAlarm(index)) index += direction;
  if (index >= 0 && index <= last) choose(index);
}

element("period").max = last;
element("period").value = last;
for (const id of ["previous-alarm", "next-alarm"]) element(id).disabled = !data.alarm_periods.some(Boolean);
element("interactive").hidden = false;
element("period").addEventListener("input", tellPeriod);
element("previous-alarm").addEventListener("click", () => walk(-1));
element("next-alarm").addEventListener("click", () => walk(1));
element("picture").addEventListener("click", (event) => choose(indexAt(event)));
element("picture").addEventListener("pointermove", hoverTime);
element("picture").addEventListener("pointerleave", () => { element("tip").hidden = true; });
tellPeriod();
document.documentElement.dataset.charts = "drawn";
document.documentElement.dataset.ready = "yes";
