"use strict";
// The top of the page: what, where, why, what to change.

function verdictKind(culprit) {
  return kindClass(culprit.step.counts);
}

// True if no op made the value: it was there, and the culprit's step is the first op that read it.
const fromStart = (culprit) => Boolean(culprit.origin) && culprit.origin !== "op";

// "log(0.0) is -inf, at attention.py:27 in model.layer1"
function verdictTitle(culprit) {
  const {step} = culprit;
  const kind = verdictKind(culprit);
  const what = culprit.headline || `${step.op_name} made ${kindsText(step.counts) || "a non-finite value"}`;
  const place = hasPlace(step.location) ? [fromStart(culprit) ? " first read at " : " at ", el("b", breakable(placeText(step.location)))] : null;
  const module = moduleText(step) ? [place ? " in " : " in module ", el("b", breakable(moduleText(step)))] : null;
  return el(what.length > 60 ? "h1.long" : "h1", el(`span.what.break${kind === "nan" ? "" : "." + kind}`, unbroken(what)),
    place || module ? el("span.place.break", ",", place, module) : null);
}

function verdictLead(culprit) {
  const {step} = culprit;
  const target = DATA.diagnosis.target;
  const sentences = [];
  if (fromStart(culprit)) sentences.push(`The value was bad before any op touched it${culprit.origin_label ? ": " + culprit.origin_label : ""}.`);
  else if (String(culprit.cause).includes("deliberate")) sentences.push("Everything else that this op read was finite or an infinity that your program put there on purpose.");
  else sentences.push("Everything that this op read was finite; what it wrote is not.");
  if (culprit.times > 1) sentences.push(`This line did it ${count(culprit.times)} times; what follows is the first.`);
  const later = pathLength(culprit) - 1;
  if (later > 0 && target) {
    const written = targetText(target).includes("gradient") ? "" : `, the output of ${target.op_name},`;
    sentences.push(`${counted(later, "op")} later it reached ${targetText(target)}${written} as ${kindsText(target.counts) || "a finite value"}.`);
  } else if (target && target.seq === step.seq) sentences.push(`What it wrote is ${targetText(target)}.`);
  return el("p.lead", sentences.join(" "));
}

// The way in one line: the culprit, where it changed its kind, the target. Each leads to its step on the path.
function routeView(culprit) {
  const {path} = culprit;
  if (path.length < 2) return null;
  const last = path.length - 1;
  const changes = path.map((_, i) => i).filter((i) => i > 0 && i < last && transitionText(path[i])).slice(0, 3);
  const stops = [0, ...changes, last];
  return el("ol.route", {"aria-label": "From the culprit to the tensor that you asked about"}, stops.map((i, k) => {
    const step = path[i];
    const between = k ? path.slice(stops[k - 1], i).reduce((sum, other) => sum + 1 + (other.folded || 0), 0) - 1 : 0;
    return el("li", k ? el("span.gap", between ? `→ ${counted(between, "op")} →` : "→") : null,
      el("a", {href: "#path", onclick: () => selectStep(i)}, sign(step.counts, true), i === 0 && fromStart(culprit) ? " read by " : " ", el("b", step.op_name),
        el("span.soft.small", i === last ? `, what you asked about` : moduleText(step) ? ` in ${moduleText(step)}` : "")));
  }));
}

const pathLength = (culprit) => culprit.path.reduce((sum, step) => sum + 1 + (step.folded || 0), 0);

function phaseSentence(step) {
  const node = nodeAround(step) ? [", inside ", el("code", nodeAround(step))] : null;
  const forward = step.at_forward && hasPlace(step.location) ? el("span.soft", " (the line is that of its forward op)") : null;
  return [phaseText(step), node, forward];
}

// An op that goes by the name of its autograd node: the node, and which op inside of it.
function operatorText(step) {
  const name = step.operator_name || step.op_name;
  if (!step.autograd_node || nodeAround(step)) return [el("code", name), ` (#${step.seq})`];
  return [el("code", step.op_name), ", in it ", el("code", name), ` (#${step.seq})`];
}

function whereCard(culprit) {
  const {step} = culprit;
  return el("section.card.where", {"aria-labelledby": "where-title"}, el("h2", {id: "where-title"}, "Where"), placeLine(step.location),
    sourceView(step.location, step.op_name), stackView(culprit));
}

function opCard(culprit) {
  const {step} = culprit;
  return el("section.card.op-facts", {"aria-labelledby": "op-title"}, el("h2", {id: "op-title"}, "The op"), facts([
      ["Op", operatorText(step)],
      ["Module", moduleText(step) && el("code", moduleText(step))],
      ["Phase", phaseSentence(step)],
      ["Output", `${shapeText(step.shape)} ${dtypeText(step.dtype)} on ${step.device}`],
      ["Thread", step.thread_name],
      ["File", hasPlace(step.location) && step.location.file],
    ]), operandFacts(culprit));
}

function stackView(culprit) {
  const stack = (culprit.stack || []).filter(hasPlace);
  if (!stack.length) return null;
  const library = (file) => /[\\/](site-packages|dist-packages|lib[\\/]python[\d.]*)[\\/]|^</.test(file);
  return el("details", el("summary", `Python stack, ${counted(stack.length, "frame")}, innermost last`),
    el("ol.stack", stack.map((frame, i) => el(i === stack.length - 1 ? "li.last" : library(frame.file) ? "li" : "li.user",
      el("code", `${frame.file}:${frame.line}`), frame.function ? [" in ", el("code", frame.function)] : null,
      (DATA.page.sources[frame.file] || {})[frame.line] ? el("div.soft.mono", DATA.page.sources[frame.file][frame.line].trim()) : null))));
}

function whyCard(culprit) {
  const {step} = culprit;
  const witness = culprit.witness || [];
  const first = witness[0];
  return el("section.card.why", {"aria-labelledby": "why-title"}, el("h2", {id: "why-title"}, "Why"), originSentence(culprit),
    el("p.first", fromStart(culprit) ? `${step.op_name} wrote: ` : null, first ? [el("code", first.text || `${step.op_name}(…) = ${numberText(first.value)}`), (first.index || []).length ? [" at ", el("code", list(first.index))] : null, "; "] : null,
      countsSentence(step.counts), samplesPhrase(culprit), "."),
    culprit.explanation ? el("p", culprit.explanation) : null,
    el("p", el("span.soft", "Cause: "), culprit.cause && culprit.cause !== "unknown" ? culprit.cause : "not known; the facts are all there is"));
}

// What held the bad value from the start: how much of it, and where.
function originSentence(culprit) {
  const held = fromStart(culprit) && (culprit.operands || []).find((operand) => operand.label && operand.label === culprit.origin_label);
  if (!held || !badCount(held.counts)) return null;
  const {first_nan: nan = [], first_pos_inf: pos = [], first_neg_inf: neg = []} = held.counts;
  const at = [nan, pos, neg].find((index) => index.length);
  return el("p.first", el("code", held.label), ` held: ${countsSentence(held.counts)}`, at ? [", the first at ", el("code", list(at))] : null, ".");
}

function samplesPhrase(culprit) {
  const total = (culprit.step.shape || [])[0];
  if (!culprit.bad_sample_count || !(culprit.step.shape || []).length) return "";
  if (culprit.bad_sample_count === total) return `, in every one of ${counted(total, "sample")}`;
  return `, in ${count(culprit.bad_sample_count)} of ${counted(total, "sample")}`;
}

function rangeText(operand) {
  if (operand.is_scalar) return `the number ${numberText(operand.value)}`;
  if (operand.overwritten) return "overwritten in place; its values are gone";
  const range = operand.has_range ? (operand.min === operand.max ? `all ${numberText(operand.min)}` : `${numberText(operand.min)} … ${numberText(operand.max)}`) : "";
  return [range, badCount(operand.counts) ? countsSentence(operand.counts) : ""].filter(Boolean).join("; ") || "range not known";
}

function operandFacts(culprit) {
  const operands = (culprit.operands || []).filter((operand) => operand.name !== "output");
  if (!operands.length) return null;
  return [el("h3", "What it read"), facts(operands.map((operand) => [
    el("code", operand.name || "input"),
    [operand.is_scalar ? null : `${shapeText(operand.shape)} ${dtypeText(operand.dtype)}, `, rangeText(operand),
      operand.label ? el("span.soft", ` (${operand.label})`) : null],
  ]))];
}

function changeCard(culprit) {
  const {step} = culprit;
  // The line that only read a bad value is not the one to change.
  const line = !fromStart(culprit) && hasPlace(step.location) && sourceView(step.location, step.op_name, 0);
  return el("section.card.change", {"aria-labelledby": "change-title"}, el("h2", {id: "change-title"}, "What to change"),
    el("p.first", culprit.help || "There is no general advice for this: look at what the line reads, and at the range that it is in."),
    line && line.className !== "source-none" ? line : null);
}

function culpritSwitch(chosen) {
  const {culprits} = DATA.diagnosis;
  if (culprits.length < 2) return null;
  const shown = culprits.slice(0, 6);
  return el("div.switch", {role: "group", "aria-label": "Culprits, in the order in which they ran"},
    el("span.soft", `${counted(culprits.length, "culprit")}, in the order in which they ran:`),
    shown.map((culprit, i) => el("button", {type: "button", "aria-pressed": String(i === chosen), onclick: () => choose(i, "switch")},
      `${i + 1}. ${culprit.step.op_name}, ${placeText(culprit.step.location)}${culprit.times > 1 ? ` (${count(culprit.times)} times)` : ""}`)),
    culprits.length > shown.length ? el("a", {href: "#culprits"}, `and ${count(culprits.length - shown.length)} more`) : null);
}

function warnings(culprit) {
  const {note, blind_spots: blind = []} = DATA.diagnosis;
  const items = [];
  if (culprit && culprit.certain === false) items.push(el("li", el("b", "Not certain. "), culprit.doubt || "Part of the evidence is missing."));
  if (blind.length) {
    items.push(el("li", el("b", "Not everything was seen: "), `${blind.slice(0, 2).map((spot) => spot.text || spot.kind).join("; ")}${blind.length > 2 ? "; and more" : ""}. `,
      el("a", {href: "#blind"}, "Blind spots")));
  }
  if (note) items.push(el("li", el("b", "Note. "), note));
  return items.length ? el("ul.warning", items) : null;
}

function renderVerdict(chosen) {
  const {culprits, target} = DATA.diagnosis;
  const section = $("verdict");
  const culprit = culprits[chosen];
  if (!culprit) {
    const finite = target && !badCount(target.counts);
    section.replaceChildren(
      el("div.kicker", sign(target && target.counts), el("span.soft", "the tensor that you asked about")),
      el("h1", el(`span.what.${finite ? "good" : "inf"}`, finite ? "Nothing is wrong: every element is finite" : "No op is to blame"),
        target && hasPlace(target.location) ? el("span.place", `, ${target.op_name} at `, el("b", placeText(target.location))) : null),
      el("p.lead", target ? `${target.op_name} ${shapeText(target.shape)} ${dtypeText(target.dtype)}: ${countsSentence(target.counts)}.` : ""), warnings(null) || "");
    return;
  }
  const nth = culprits.length > 1 ? `Culprit ${chosen + 1} of ${culprits.length}` : fromStart(culprit) ? "Bad from the start" : "The op that did it first";
  const switcher = culpritSwitch(chosen);
  section.replaceChildren(...[switcher,
    el("div.kicker", sign(culprit.step.counts), el("span.quiet-label", nth), el("span.soft", `${passText(culprit.step)}, op #${culprit.step.seq}`)),
    verdictTitle(culprit), verdictLead(culprit), routeView(culprit), warnings(culprit),
    el("div.answers", el("div", whereCard(culprit), opCard(culprit)), el("div", whyCard(culprit), changeCard(culprit)))].filter(Boolean));
}
