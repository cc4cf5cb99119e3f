"use strict";
// The path from the culprit to the target, as a line that can be walked. Long paths are folded; what is folded opens in
// portions, so that the document never holds more than a few hundred steps.

const PATH = {culprit: null, place: [], rows: [], open: new Set(), at: 0};
const FOLD_OVER = 120;
const FOLD_ENDS = 40;
const FOLD_PORTION = 100;

// What is shown: {step: index} or {from, to} for a run that is folded.
function pathRows(path, open) {
  const keep = new Uint8Array(path.length);
  let transitions = 0;
  path.forEach((step, i) => {
    if (path.length <= FOLD_OVER || i < FOLD_ENDS || i >= path.length - FOLD_ENDS || open.has(i)) keep[i] = 1;
    else if (transitionText(step) && transitions < 50) {
      transitions += 1;
      for (let k = Math.max(0, i - 1); k <= Math.min(path.length - 1, i + 1); k += 1) keep[k] = 1;
    }
  });
  const rows = [];
  for (let i = 0; i < path.length; i += 1) {
    if (keep[i]) rows.push({step: i});
    else if (rows.length && rows[rows.length - 1].to === i) rows[rows.length - 1].to = i + 1;
    else rows.push({from: i, to: i + 1});
    if (keep[i] && path[i].folded) rows.push({left: path[i].folded, after: i});
  }
  return rows;
}

function foldText(path, row) {
  const names = new Map();
  for (let i = row.from; i < row.to; i += 1) names.set(path[i].op_name, (names.get(path[i].op_name) || 0) + 1);
  const top = [...names].sort((a, b) => b[1] - a[1]);
  const rest = top.length > 3 ? `, ${counted(top.length - 3, "other kind")}` : "";
  return `${counted(row.to - row.from, "op")} folded: ${top.slice(0, 3).map(([name, n]) => `${name} × ${count(n)}`).join(", ")}${rest}`;
}

function pathRow(row, position) {
  const {path, step: culpritStep} = PATH.culprit;
  const attributes = {role: "option", id: `row-${position}`, "aria-selected": "false", onclick: () => { select(position); if (!("step" in row)) openFold(position); }};
  if ("left" in row) {
    const kind = kindClass(path[row.after].counts);
    return el("div.fold", attributes, el(`div.node.in-${kind}.out-${kind}`, el("span.sign.plain", "···")), el("div", `${counted(row.left, "op")} left out here`));
  }
  if ("from" in row) {
    const kind = kindClass(path[row.from].counts);
    return el("div.fold", attributes, el(`div.node.in-${kind}.out-${kind}`, el("span.sign.plain", "···")),
      el("div", foldText(path, row)), el("div.sub", `Enter or a click shows the next ${Math.min(FOLD_PORTION, row.to - row.from)}`));
  }
  const step = path[row.step];
  const before = row.step ? kindClass(path[row.step - 1].counts) : "good";
  const last = row.step === path.length - 1;
  const change = transitionText(step);
  const isCulprit = row.step === 0 && step.seq === culpritStep.seq;
  return el(isCulprit ? "div.culprit" : "div", attributes,
    el(`div.node.in-${before}${last ? "" : `.out-${kindClass(step.counts)}`}`, sign(step.counts, true)),
    el("div.op", step.op_name, change ? el(`span.sign.${kindClass(step.counts)}`, change) : null, isCulprit ? el("span.sign.plain", fromStart(PATH.culprit) ? "first reader" : "culprit") : null,
      last && !isCulprit ? el("span.sign.plain", "target") : null),
    el("div.sub", [shapeText(step.shape), moduleText(step), hasPlace(step.location) ? placeText(step.location) : "", phaseText(step) === "forward" ? "" : phaseText(step)].filter(Boolean).join(" · ")));
}

function drawRows() {
  PATH.rows = pathRows(PATH.culprit.path, PATH.open);
  const read = (PATH.culprit.operands || []).filter((operand) => operand.name !== "output" && !badCount(operand.counts)).slice(0, 4);
  $("rail").replaceChildren(...read.map((operand) => el("div.read", {role: "presentation"}, "read ", el("code", operand.name), operand.is_scalar ? "" : ` ${shapeText(operand.shape)}`, ", ", operand.is_scalar ? rangeText(operand) : `finite${operand.has_range ? `, ${rangeText(operand)}` : ""}`)),
    ...PATH.rows.map(pathRow), el("div.end", {role: "presentation"}, targetText(DATA.diagnosis.target)));
}

// Shows the step of that row; the detail region is live, so that a screen reader follows the walk.
function select(position, quietly) {
  const rail = $("rail");
  PATH.at = Math.max(0, Math.min(PATH.rows.length - 1, position));
  for (const chosen of rail.querySelectorAll('[aria-selected="true"]')) chosen.setAttribute("aria-selected", "false");
  const node = $(`row-${PATH.at}`);
  if (!node) return;
  node.setAttribute("aria-selected", "true");
  rail.setAttribute("aria-activedescendant", node.id);
  if (!quietly) {
    const top = node.offsetTop - rail.offsetTop * (rail.offsetParent === node.offsetParent ? 1 : 0);
    if (top < rail.scrollTop + 8) rail.scrollTop = top - 8;
    else if (top + node.offsetHeight > rail.scrollTop + rail.clientHeight - 8) rail.scrollTop = top + node.offsetHeight - rail.clientHeight + 8;
  }
  drawDetail();
}

// The step by its index, unfolded if it must be.
function selectStep(index) {
  if (!PATH.rows.some((row) => row.step === index)) { PATH.open.add(index); drawRows(); }
  select(PATH.rows.findIndex((row) => row.step === index));
}

function openFold(position) {
  const row = PATH.rows[position];
  if (!row || !("from" in row)) return;
  for (let i = row.from; i < Math.min(row.to, row.from + FOLD_PORTION); i += 1) PATH.open.add(i);
  drawRows();
  select(position);
}

function drawDetail() {
  const row = PATH.rows[PATH.at];
  const {path} = PATH.culprit;
  const back = el("button", {type: "button", disabled: PATH.at === 0, onclick: () => select(PATH.at - 1)}, "← Back");
  const on = el("button", {type: "button", disabled: PATH.at >= PATH.rows.length - 1, onclick: () => select(PATH.at + 1)}, "On →");
  const head = (name, rest) => el("div.step-head", el("div", el("span.name", name), rest), el("div.buttons", back, on));
  if (!("step" in row)) {
    const text = "from" in row ? foldText(path, row) : `${counted(row.left, "op")} of the path were left out of the diagnosis`;
    $("detail").replaceChildren(head("Folded", null), el("p", text, "."), "from" in row ? el("button", {type: "button", onclick: () => openFold(PATH.at)}, `Show the next ${Math.min(FOLD_PORTION, row.to - row.from)}`) : "");
    return;
  }
  const step = path[row.step];
  const change = transitionText(step);
  const onPath = new Set(path.slice(Math.max(0, row.step - 1), row.step).map((other) => other.seq));
  const others = (step.parents || []).filter((seq) => !onPath.has(seq));
  $("detail").replaceChildren(
    head(step.op_name, el("span.soft", ` step ${count(PATH.place[row.step])} of ${count(pathLength(PATH.culprit))} `)),
    el("p", sign(step.counts), " ", change ? el("b", `${change}: `) : row.step ? el("span.soft", "carried on from the step before: ") : null, countsSentence(step.counts), "."),
    el("div.below", placeLine(step.location)), sourceView(step.location, step.op_name),
    el("div.below", facts([
      ["Op", operatorText(step)],
      ["Output", `${shapeText(step.shape)} ${dtypeText(step.dtype)} on ${step.device}`],
      ["Module", moduleText(step) && el("code", moduleText(step))],
      ["It gives", step.label],
      ["Phase", phaseSentence(step)],
      ["Thread", step.thread_name],
      ["First NaN", step.counts && step.counts.nan ? el("code", list(step.counts.first_nan)) : null],
      ["First +Inf", step.counts && step.counts.pos_inf ? el("code", list(step.counts.first_pos_inf)) : null],
      ["First −Inf", step.counts && step.counts.neg_inf ? el("code", list(step.counts.first_neg_inf)) : null],
      ["Followed", (step.element || []).length ? ["element ", el("code", list(step.element))] : null],
      ["Also read", others.length ? `non-finite values of ${others.map((seq) => `#${seq}`).join(", ")}` : null],
      ["Scan", step.inherited ? "not scanned: known from the memory that it shares" : null],
      ["File", hasPlace(step.location) && step.location.file],
    ])));
}

function pathKey(event) {
  const page = 10;
  const to = {ArrowDown: PATH.at + 1, ArrowRight: PATH.at + 1, ArrowUp: PATH.at - 1, ArrowLeft: PATH.at - 1, PageDown: PATH.at + page,
    PageUp: PATH.at - page, Home: 0, End: PATH.rows.length - 1}[event.key];
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (to !== undefined) select(to);
  else if (event.key === "Enter" || event.key === " ") openFold(PATH.at);
  else return;
  event.preventDefault();
}

function renderPath(culprit) {
  const section = $("path");
  section.hidden = !culprit || !culprit.path.length;
  if (section.hidden) return;
  PATH.culprit = culprit;
  PATH.open = new Set();
  // The place of each step on the whole path, with what was left out.
  let before = 0;
  PATH.place = culprit.path.map((step) => { before += 1; const place = before; before += step.folded || 0; return place; });
  section.replaceChildren(el("h2", "The path"),
    el("p.intro", culprit.path.length === 1 ? `One op long: ${culprit.step.op_name} wrote ${targetText(DATA.diagnosis.target)} itself.`
      : [`How it went on from ${culprit.step.op_name} to ${targetText(DATA.diagnosis.target)}: ${counted(pathLength(culprit), "op")}. `, el("span.hint", "Walk it with the arrow keys.")]),
    el("div.walk", el("div.card.rail", {id: "rail", role: "listbox", tabindex: "0", "aria-label": "Ops on the path, culprit first", onkeydown: pathKey}),
      el("div.card.detail", {id: "detail", role: "region", "aria-live": "polite", "aria-label": "The step"})));
  drawRows();
  select(0, true);
}
