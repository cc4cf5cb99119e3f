"use strict";
// The last ops in the flight recorder: the largest magnitude of each on a log scale, drawn on a canvas, and a list that
// holds only the rows in sight. Both stay quick with 100,000 ops.

const TIME = {from: 0, to: 0, at: -1, shown: [], match: null, words: "", onlyBad: false};
const ROW = 28;
const LIMITS = [["float16 max", Math.log10(65504)], ["float32 max", Math.log10(3.4028235e38)]];
const PHASES = ["forward", "backward", "recompute", "optimizer"];

// Columns to arrays; names come as numbers into tables, sequence numbers as differences.
function unpackTimeline(timeline) {
  let seq = 0;
  timeline.sequence = timeline.seq.map((difference) => (seq += difference));
  timeline.isBad = new Uint8Array(timeline.seq.length);
  for (const i of timeline.bad) timeline.isBad[i] = 1;
  timeline.level = timeline.largest.map((value) => (value === null || value < 0 ? NaN : value === 0 ? -Infinity : Math.log10(value)));
}

const timePlace = (place) => { const at = place.lastIndexOf(":"); return at > 0 ? lineOf(place.slice(0, at), place.slice(at + 1)) : place; };
const timeOp = (i) => {
  const t = DATA.page.timeline;
  return {seq: t.sequence[i], op: t.ops[t.op[i]], module: t.modules[t.module[i]], place: timePlace(t.places[t.place[i]]), thread: t.threads[t.thread[i]], phase: PHASES[t.phase[i]] || "", largest: t.largest[i], bad: Boolean(t.isBad[i])};
};
const largestText = (op) => (op.largest === null ? "not scanned" : numberText(Number(op.largest)));

function timeSentence(i) {
  const op = timeOp(i);
  return [`#${op.seq} ${op.op}`, op.bad ? "NOT FINITE" : op.largest === null ? "not scanned: writes no numbers" : `largest magnitude ${largestText(op)}`, op.module,
    op.place, op.phase, op.thread].filter(Boolean).join(" · ");
}

function yScale(height) {
  const {level} = DATA.page.timeline;
  let low = Infinity;
  let high = -Infinity;
  for (let i = TIME.from; i < TIME.to; i += 1) {
    const value = level[i];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) { low = -1; high = 1; }
  low = Math.max(low, high - 45);
  low = Math.floor(low - 0.2);
  high = Math.max(Math.ceil(high + 0.2), low + 2);
  const top = 30;
  const bottom = height - 34;
  return {low, high, top, bottom, y: (value) => (value === -Infinity ? bottom : bottom - (Math.max(low, Math.min(high, value)) - low) / (high - low) * (bottom - top))};
}

const LEFT = 52;
const timeX = (i, width) => LEFT + (i + 0.5 - TIME.from) / (TIME.to - TIME.from) * (width - LEFT - 8);
const timeAt = (x, width) => Math.max(TIME.from, Math.min(TIME.to - 1, Math.floor(TIME.from + (x - LEFT) / (width - LEFT - 8) * (TIME.to - TIME.from))));

function drawAxes(context, width, height, scale) {
  context.font = "11px ui-monospace, Menlo, Consolas, monospace";
  context.textBaseline = "middle";
  const every = Math.max(1, Math.ceil((scale.high - scale.low) / 7));
  for (let power = scale.low; power <= scale.high; power += every) {
    const y = scale.y(power);
    context.fillStyle = style("--line");
    context.fillRect(LEFT, y, width - LEFT - 8, 1);
    context.fillStyle = style("--soft");
    context.textAlign = "right";
    context.fillText(power >= -3 && power <= 4 ? String(Number(`1e${power}`)) : `1e${power}`, LEFT - 6, y);
  }
  for (const [name, power] of LIMITS) {
    if (power < scale.low || power > scale.high) continue;
    context.strokeStyle = style("--inf");
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(LEFT, scale.y(power));
    context.lineTo(width - 8, scale.y(power));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = style("--inf");
    context.textAlign = "right";
    context.fillText(name, width - 12, scale.y(power) + 8);
  }
  context.fillStyle = style("--soft");
  context.textAlign = "right";
  context.fillText("bad", LEFT - 6, 14);
  context.textAlign = "left";
  const {sequence} = DATA.page.timeline;
  context.fillText(`#${sequence[TIME.from]}`, LEFT, height - 8);
  context.textAlign = "right";
  context.fillText(`#${sequence[TIME.to - 1]}`, width - 8, height - 8);
}

// A strip under the plot: forward, backward, recompute, optimizer, by letter and by height.
function drawPhases(context, width, scale) {
  const {phase} = DATA.page.timeline;
  let begin = TIME.from;
  for (let i = TIME.from + 1; i <= TIME.to; i += 1) {
    if (i < TIME.to && phase[i] === phase[begin]) continue;
    const x0 = timeX(begin - 0.5, width);
    const x1 = timeX(i - 0.5, width);
    context.fillStyle = style("--line-strong");
    context.globalAlpha = [0.25, 0.75, 0.5, 1][phase[begin]];
    context.fillRect(x0, scale.bottom + 5, Math.max(0.5, x1 - x0 - 0.5), 3);
    context.globalAlpha = 1;
    if (x1 - x0 > 60) {
      context.fillStyle = style("--soft");
      context.textAlign = "center";
      context.fillText(PHASES[phase[begin]], Math.min(Math.max((x0 + x1) / 2, LEFT + 90), width - 98), scale.bottom + 26);
    }
    begin = i;
  }
}

function drawOps(context, width, scale) {
  const {level, isBad} = DATA.page.timeline;
  const ink = style("--ink");
  const faint = style("--line-strong");
  const span = TIME.to - TIME.from;
  const plotWidth = width - LEFT - 8;
  if (span > plotWidth * 2) {
    // More ops than pixels: from the least to the largest of each column.
    const least = new Float64Array(Math.ceil(plotWidth) + 1).fill(Infinity);
    const most = new Float64Array(Math.ceil(plotWidth) + 1).fill(-Infinity);
    for (let i = TIME.from; i < TIME.to; i += 1) {
      if (Number.isNaN(level[i]) || (TIME.match && !TIME.match[i])) continue;
      const column = Math.floor((i - TIME.from) / span * plotWidth);
      const y = scale.y(level[i]);
      if (y < least[column]) least[column] = y;
      if (y > most[column]) most[column] = y;
    }
    context.fillStyle = ink;
    for (let column = 0; column < least.length; column += 1) {
      if (least[column] > most[column]) continue;
      context.globalAlpha = 0.35;
      context.fillRect(LEFT + column, least[column], 1, Math.max(1, most[column] - least[column]));
      context.globalAlpha = 1;
      context.fillRect(LEFT + column, least[column] - 1, 1, 2);
    }
  } else {
    const size = Math.max(2, Math.min(5, plotWidth / span * 0.7));
    for (let i = TIME.from; i < TIME.to; i += 1) {
      if (Number.isNaN(level[i])) continue;
      const matches = !TIME.match || TIME.match[i];
      const x = timeX(i, width);
      const y = scale.y(level[i]);
      context.fillStyle = matches ? ink : faint;
      context.globalAlpha = matches ? 0.2 : 0.1;
      context.fillRect(x - size / 4, y, size / 2, scale.bottom - y);
      context.globalAlpha = matches ? 1 : 0.35;
      context.fillRect(x - size / 2, y - size / 2, size, size);
      context.globalAlpha = 1;
    }
  }
  // Bad ops: crosses in a lane of their own, one a column at most.
  context.strokeStyle = style("--nan");
  context.lineWidth = 1.75;
  let lastX = -10;
  context.beginPath();
  for (let i = TIME.from; i < TIME.to; i += 1) {
    if (!isBad[i] || (TIME.match && !TIME.match[i])) continue;
    const x = timeX(i, width);
    if (x - lastX < 3) continue;
    lastX = x;
    context.moveTo(x - 3.5, 10.5); context.lineTo(x + 3.5, 17.5);
    context.moveTo(x + 3.5, 10.5); context.lineTo(x - 3.5, 17.5);
  }
  context.stroke();
}

function drawTimeline() {
  const canvas = $("plot");
  const width = canvas.clientWidth || 800;
  const height = canvas.clientHeight || 260;
  const context = fitCanvas(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const scale = yScale(height);
  drawAxes(context, width, height, scale);
  drawPhases(context, width, scale);
  drawOps(context, width, scale);
  for (const culprit of DATA.diagnosis.culprits.slice(0, 50)) {
    const i = TIME.culprits.get(culprit.step.seq);
    if (i === undefined || i < TIME.from || i >= TIME.to) continue;
    const x = timeX(i, width);
    context.strokeStyle = style("--nan");
    context.setLineDash([2, 3]);
    context.beginPath(); context.moveTo(x, 20); context.lineTo(x, scale.bottom); context.stroke();
    context.setLineDash([]);
    context.fillStyle = style("--nan");
    const right = x > width - 130;
    context.textAlign = right ? "right" : "left";
    context.fillText(culprit.step.op_name, x + (right ? -5 : 5), 26);
  }
  if (TIME.at >= TIME.from && TIME.at < TIME.to) {
    const x = timeX(TIME.at, width);
    context.strokeStyle = style("--focus");
    context.lineWidth = 1.5;
    context.beginPath(); context.moveTo(x, 2); context.lineTo(x, scale.bottom + 9); context.stroke();
  }
}

function pickOp(i, quiet) {
  const n = DATA.page.timeline.seq.length;
  TIME.at = Math.max(0, Math.min(n - 1, i));
  const span = TIME.to - TIME.from;
  if (TIME.at < TIME.from || TIME.at >= TIME.to) zoomTo(TIME.at - span / 2, span);
  $("time-readout").textContent = timeSentence(TIME.at);
  drawTimeline();
  if (!quiet) showRow();
  drawList();
}

function zoomTo(from, span) {
  const n = DATA.page.timeline.seq.length;
  span = Math.max(Math.min(10, n), Math.min(n, Math.round(span)));
  TIME.from = Math.max(0, Math.min(n - span, Math.round(from)));
  TIME.to = TIME.from + span;
  drawTimeline();
}
function zoomBy(factor, around) {
  const span = TIME.to - TIME.from;
  const center = around === undefined ? (TIME.at >= TIME.from && TIME.at < TIME.to ? TIME.at : (TIME.from + TIME.to) / 2) : around;
  zoomTo(center - (center - TIME.from) * factor, span * factor);
}

function nextBad(direction) {
  const {isBad} = DATA.page.timeline;
  for (let i = (TIME.at < 0 ? (direction > 0 ? -1 : isBad.length) : TIME.at) + direction; i >= 0 && i < isBad.length; i += direction) if (isBad[i]) return i;
  return TIME.at;
}

function filterOps() {
  const t = DATA.page.timeline;
  const words = TIME.words.toLowerCase().split(/\s+/).filter(Boolean);
  const n = t.seq.length;
  TIME.match = words.length || TIME.onlyBad ? new Uint8Array(n) : null;
  TIME.shown = [];
  // Each distinct name is looked at once, each op only adds up the answers.
  const hits = (names) => names.map((name) => words.map((word) => String(name).toLowerCase().includes(word)));
  const [ops, modules, places] = [hits(t.ops), hits(t.modules), hits(t.places.map(baseName))];
  for (let i = 0; i < n; i += 1) {
    const good = (!TIME.onlyBad || t.isBad[i]) && words.every((_, w) => ops[t.op[i]][w] || modules[t.module[i]][w] || places[t.place[i]][w]);
    if (!good) continue;
    TIME.shown.push(i);
    if (TIME.match) TIME.match[i] = 1;
  }
  $("time-count").textContent = TIME.match ? `${count(TIME.shown.length)} of ${count(n)} ops` : counted(n, "op");
  $("ops-space").style.height = `${(TIME.shown.length + 1) * ROW}px`;
  $("ops").setAttribute("aria-rowcount", String(TIME.shown.length + 1));
  drawTimeline();
  drawList();
}

function showRow() {
  let low = 0;
  let high = TIME.shown.length;
  while (low < high) { const middle = (low + high) >> 1; if (TIME.shown[middle] < TIME.at) low = middle + 1; else high = middle; }
  const box = $("ops");
  if (TIME.shown[low] === TIME.at) box.scrollTop = Math.max(0, low * ROW - box.clientHeight / 2);
}

function drawList() {
  const box = $("ops");
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
  const last = Math.min(TIME.shown.length, first + Math.ceil(box.clientHeight / ROW) + 8);
  const rows = [];
  for (let k = first; k < last; k += 1) {
    const i = TIME.shown[k];
    const op = timeOp(i);
    const row = el(`div.row${op.bad ? ".bad" : ""}${i === TIME.at ? ".chosen" : ""}`, {role: "row", "aria-rowindex": k + 2, onclick: () => pickOp(i, true)},
      [`#${op.seq}`, op.op, op.bad ? "✕ not finite" : largestText(op), op.phase, op.place, op.module].map((text) => el("span", {role: "cell", title: plain(text)}, text)));
    row.style.top = `${(k + 1) * ROW}px`;
    rows.push(row);
  }
  $("ops-rows").replaceChildren(...rows);
}

function timeKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? Math.max(1, Math.round((TIME.to - TIME.from) / 10)) : 1;
  const start = TIME.at < 0 ? TIME.to : TIME.at;
  const to = {ArrowLeft: start - far, ArrowRight: start + far, Home: 0, End: Infinity, n: nextBad(1), p: nextBad(-1)}[event.key];
  if (to !== undefined) pickOp(to);
  else if (event.key === "+" || event.key === "=") zoomBy(0.5);
  else if (event.key === "-") zoomBy(2);
  else return;
  event.preventDefault();
}

function timePointer(canvas) {
  let drag = null;
  const where = (event) => [event.clientX - canvas.getBoundingClientRect().left, canvas.clientWidth];
  canvas.addEventListener("pointerdown", (event) => { drag = {x: event.clientX, from: TIME.from, moved: false}; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) { $("time-readout").textContent = timeSentence(timeAt(...where(event))); return; }
    const moved = event.clientX - drag.x;
    if (Math.abs(moved) > 4) drag.moved = true;
    if (drag.moved) zoomTo(drag.from - moved / (canvas.clientWidth - LEFT - 8) * (TIME.to - TIME.from), TIME.to - TIME.from);
  });
  canvas.addEventListener("pointerup", (event) => { if (drag && !drag.moved) pickOp(timeAt(...where(event))); drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { if (TIME.at >= 0 && !drag) $("time-readout").textContent = timeSentence(TIME.at); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;  // the plain wheel scrolls the page
    event.preventDefault();
    zoomBy(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, timeAt(...where(event)));
  }, {passive: false});
}

function renderTimeline() {
  const t = DATA.page.timeline;
  const section = $("timeline");
  const n = t.seq.length;
  section.hidden = n === 0;
  if (!n) return;
  unpackTimeline(t);
  TIME.culprits = new Map();
  const wanted = new Set(DATA.diagnosis.culprits.map((culprit) => culprit.step.seq));
  t.sequence.forEach((seq, i) => { if (wanted.has(seq)) TIME.culprits.set(seq, i); });
  TIME.to = n;
  const button = (text, name, act) => el("button", {type: "button", "aria-label": name, onclick: act}, text);
  const canvas = el("canvas.plot", {id: "plot", tabindex: "0", role: "img", onkeydown: timeKey,
    "aria-label": `The last ${counted(n, "op")}, ${count(t.bad.length)} of them not finite, by largest magnitude. Arrow keys walk the ops, n and p go to the next and the previous bad one, plus and minus zoom.`});
  section.replaceChildren(el("h2", "The last ops"),
    el("p.intro", `What the flight recorder still holds: ${counted(n, "op")} in the order in which they ran, by the largest magnitude that each wrote; ${count(t.bad.length)} wrote something that is not finite.`),
    el("div.tools", el("input", {type: "search", id: "time-filter", placeholder: "Op, module or file", "aria-label": "Show only ops whose name, module or file contains"}),
      el("label", el("input", {type: "checkbox", id: "time-bad"}), "only bad ones"),
      button("− Zoom", "Zoom out", () => zoomBy(2)), button("+ Zoom", "Zoom in", () => zoomBy(0.5)), button("All", "Show all ops", () => zoomTo(0, n)),
      button("✕ Culprit", "Go to the culprit", () => {
        const i = TIME.culprits.get((DATA.diagnosis.culprits[CHOSEN.at] || {step: {}}).step.seq);
        if (i !== undefined) { zoomTo(i - 40, 80); pickOp(i); } else $("time-readout").textContent = "The culprit is no longer in the flight recorder.";
      }), el("output.soft.small", {id: "time-count"})),
    canvas,
    el("div.legend", {"aria-hidden": "true"}, el("span", "■ largest magnitude"), el("span", "✕ not finite"), el("span", "┊ culprit"), el("span", "Drag to move, Ctrl + wheel to zoom, n / p for the bad ones")),
    el("output.readout", {id: "time-readout", "aria-live": "polite"}, "Choose an op to read it."),
    el("div.ops", {id: "ops", role: "table", tabindex: "0", "aria-label": "The last ops"},
      el("div.row.head", {role: "row", "aria-rowindex": "1"}, ["Op #", "Op", "Largest", "Phase", "Place", "Module"].map((name) => el("span", {role: "columnheader"}, name))),
      el("div", {id: "ops-space", "aria-hidden": "true"}), el("div", {id: "ops-rows", role: "rowgroup"})));
  timePointer(canvas);
  $("ops").addEventListener("scroll", () => requestAnimationFrame(drawList), {passive: true});
  let pending = 0;
  $("time-filter").addEventListener("input", (event) => { clearTimeout(pending); pending = setTimeout(() => { TIME.words = event.target.value; filterOps(); }, 120); });
  $("time-bad").addEventListener("change", (event) => { TIME.onlyBad = event.target.checked; filterOps(); });
  REDRAW.set("timeline", drawTimeline);
  filterOps();
  const last = DATA.diagnosis.culprits.length ? TIME.culprits.get(DATA.diagnosis.culprits[0].step.seq) : undefined;
  if (last !== undefined) pickOp(last); else $("ops").scrollTop = n * ROW;
}
