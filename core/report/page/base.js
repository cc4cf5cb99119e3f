"use strict";
// Tools that the parts of the page share. Data reaches the document through text nodes alone: nothing here or in the
// other files parses a string as HTML.

const $ = (id) => document.getElementById(id);

// Control and bidirectional characters would hide or reorder what is read: show them by name.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const plain = (text) =>
  String(text).replace(UNSEEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// el("p.soft", {id: "x"}, "text", child, [more], null): an element, its attributes, its children. Strings become text.
function el(spec, ...rest) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const item of rest.flat(3)) {
    if (item === null || item === undefined || item === false || item === "") continue;
    if (item instanceof Node) node.append(item);
    else if (typeof item === "object") {
      for (const [key, value] of Object.entries(item)) {
        if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
        else if (value === true) node.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
      }
    } else node.append(plain(item));
  }
  return node;
}

const count = (n) => Number(n || 0).toLocaleString("en");
const counted = (n, noun) => `${count(n)} ${noun}${Number(n) === 1 ? "" : "s"}`;
const list = (numbers) => `[${(numbers || []).join(", ")}]`;
const shapeText = (shape) => `(${(shape || []).join(", ")}${(shape || []).length === 1 ? "," : ""})`;
const baseName = (file) => String(file || "").split(/[\\/]/).pop();
const dtypeText = (dtype) => String(dtype || "").replace(/^torch\./, "");

// A number as JSON carries it: one that is not finite arrives as a string or as null.
function numberText(value) {
  if (value === null || value === undefined) return "unknown";
  if (typeof value !== "number") return String(value).replace("Infinity", "inf").replace(/^\+/, "").toLowerCase();
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return value.toFixed(1);
  return String(Number(value.toPrecision(6)));
}

// "-Inf", "NaN", "NaN, +Inf": which classes are among the counts; "" if none.
function kindsText(counts) {
  if (!counts) return "";
  return [counts.nan && "NaN", counts.pos_inf && "+Inf", counts.neg_inf && "−Inf"].filter(Boolean).join(", ");
}
const badCount = (counts) => (counts ? (counts.nan || 0) + (counts.pos_inf || 0) + (counts.neg_inf || 0) : 0);
const kindClass = (counts) => (!counts || !badCount(counts) ? "good" : counts.nan ? "nan" : "inf");

function sign(counts, short) {
  const words = short && counts && counts.nan && (counts.pos_inf || counts.neg_inf) ? "NaN+Inf" :
    short && counts && counts.pos_inf && counts.neg_inf ? "±Inf" : kindsText(counts);
  return el(`span.sign.${kindClass(counts)}`, words || "finite");
}

function countsSentence(counts) {
  if (!counts) return "not known";
  if (!badCount(counts)) return `all ${counted(counts.numel, "element")} finite`;
  const kinds = [["nan", "NaN"], ["pos_inf", "+Inf"], ["neg_inf", "−Inf"]].filter(([key]) => counts[key]);
  if (counts.numel === 1) return `its one element is ${kinds[0][1]}`;
  if (kinds.length === 1 && counts[kinds[0][0]] === counts.numel) return `all ${counted(counts.numel, "element")} ${kinds[0][1]}`;
  const parts = kinds.map(([key, name]) => `${count(counts[key])} ${name}`);
  return `${parts.join(", ")} of ${counted(counts.numel, "element")}`;
}

// From the enum's name, whatever its spelling: "kInfToNan", "inf_to_nan", "Inf -> NaN".
function transitionText(step) {
  const kind = String(step.transition || "").toLowerCase().replace(/^k(?=[finit])/, "").replace(/[^a-z]/g, "");
  const inf = step.counts && step.counts.neg_inf && !step.counts.pos_inf ? "−Inf" : "Inf";
  if (kind === "finitetoinf") return `finite → ${inf}`;
  if (kind === "finitetonan") return "finite → NaN";
  if (kind === "inftonan") return "Inf → NaN";
  if (kind === "nantoinf") return `NaN → ${inf}`;
  if (kind === "inftoinf") return `Inf → ${inf}`;
  return "";
}

const hasPlace = (location) => Boolean(location && location.file);
// "net.py:12", or "In[3], line 12" for a cell of a notebook.
const lineOf = (file, line) => (DATA.page.file_labels[file] ? `${DATA.page.file_labels[file]}, line ${line}` : `${baseName(file)}:${line}`);
const placeText = (location) => (hasPlace(location) ? lineOf(location.file, location.line) : "unknown place");
const moduleText = (step) => step.module_path || "";
const phaseText = (step) => step.phase || "forward";
const threadText = (step) => step.thread_name || "main thread";

// The pass in which an op ran, in words.
const passText = (step) => ({forward: "forward pass", backward: "backward pass", recompute: "recomputation", optimizer: "optimizer step"})[phaseText(step)] || phaseText(step);

// The node of autograd around an op; "" where the op goes by the node's name already.
const nodeAround = (step) => (step.autograd_node && step.autograd_node !== step.op_name ? step.autograd_node : "");

// What was asked about, after the op that wrote it: a gradient arrives by an op that nobody wrote.
const targetText = (target) => (/AccumulateGrad/.test(target.autograd_node || "") ? "the gradient that you asked about" : "the tensor that you asked about");

// For headings: a negative number never loses its sign to the line above; a name breaks after "_" and "." if it must.
const unbroken = (text) => plain(text).split(/(-(?:\d[\w.+-]*|inf\b))/).map((part, i) => (i % 2 ? el("span.whole", part) : part));
const breakable = (name) => plain(name).split(/(?<=[_.])/).flatMap((part) => [part, document.createElement("wbr")]);

// A button that copies; says so where a screen reader hears it.
function copyButton(text) {
  const button = el("button.copy", {type: "button", "aria-label": `Copy ${plain(text)}`}, "Copy");
  button.addEventListener("click", () => {
    const done = (word) => {
      button.textContent = word;
      announce(word === "Copied" ? `Copied ${plain(text)}` : "The browser did not allow copying");
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    if (!navigator.clipboard) done("Not allowed");
    else navigator.clipboard.writeText(text).then(() => done("Copied"), () => done("Not allowed"));
  });
  return button;
}

function announce(text) {
  $("announcer").textContent = text;
}

// Where the op stands in its line: by its name, else by the operator that spells it. Nothing unless it stands there once.
const SPELLED = {
  div: "/", true_divide: "/", add: "+", sub: "-", rsub: "-", mul: "*", pow: "**", matmul: "@", mm: "@", bmm: "@",
  floor_divide: "//", remainder: "%", masked_fill: "masked_fill",
};
function findOp(line, opName) {
  const name = String(opName || "").replace(/^_+|_+$/g, "").replace(/_backward$/, "");
  if (!name) return null;
  const words = [...line.matchAll(/[A-Za-z_][A-Za-z_0-9]*/g)].filter((m) => m[0].replace(/_+$/, "") === name);
  if (words.length === 1) return [words[0].index, words[0][0].length];
  const spelled = words.length ? null : SPELLED[name];
  if (!spelled) return null;
  const code = line.replace(/(["'])(?:\\.|(?!\1).)*\1|#.*$/g, (m) => " ".repeat(m.length));
  const hits = [...code.matchAll(/\*\*=?|\/\/=?|->|[-+*/%@]=?/g)].filter((m) => m[0].replace("=", "") === spelled);
  return hits.length === 1 ? [hits[0].index, hits[0][0].length] : null;
}

const indentOf = (text) => text.match(/^\s*/)[0].length;

// [number, text] of the lines around a place, up to where its block ends, without their common indentation.
function linesAround(lines, line, around) {
  const inside = indentOf(lines[line]);
  const shown = [[line, lines[line]]];
  for (let no = line - 1; no >= line - around && lines[no] !== undefined; no -= 1) shown.unshift([no, lines[no]]);
  for (let no = line + 1; no <= line + around && lines[no] !== undefined; no += 1) {
    if (lines[no].trim() && indentOf(lines[no]) < inside && !lines[no - 1].trim()) break;
    shown.push([no, lines[no]]);
  }
  while (!shown[0][1].trim() && shown.length > 1) shown.shift();
  while (!shown[shown.length - 1][1].trim() && shown.length > 1) shown.pop();
  const common = Math.min(...shown.filter(([, text]) => text.trim()).map(([, text]) => indentOf(text)), inside);
  return shown.map(([no, text]) => [no, text.slice(common)]);
}

// The lines around a place, the place itself marked; or a sentence where the source is not at hand.
function sourceView(location, opName, around = 3) {
  if (!hasPlace(location)) return el("p.source-none", "No line of yours is known for this op.");
  const lines = DATA.page.sources[location.file] || {};
  if (lines[location.line] === undefined) return el("p.source-none", "The source of this file was not at hand when the page was written.");
  const rows = linesAround(lines, location.line, around).map(([no, text]) => {
    const hit = no === location.line;
    const indent = indentOf(text);
    const bare = text.slice(indent);
    const found = hit ? findOp(bare, opName) : null;
    const code = found
      ? [bare.slice(0, found[0]), el("u", bare.slice(found[0], found[0] + found[1])), bare.slice(found[0] + found[1])]
      : bare;
    // A long line goes on further in than it began.
    const cell = el("span.tx", code || " ");
    cell.style.paddingLeft = `${indent + 4}ch`;
    cell.style.textIndent = "-4ch";
    return el(hit ? "li.hit" : Math.abs(no - location.line) > 1 ? "li.far" : "li", el("span.at", {"aria-hidden": "true"}, hit ? "▶" : " "),
      el("span.no", hit ? el("span.visually-hidden", "this line: ") : null, String(no)), cell);
  });
  return el("div.source.mono", {role: "group", "aria-label": `Source around ${placeText(location)}`}, el("ol", rows));
}

function placeLine(location, extra) {
  return el("div.place-line", el("code", placeText(location)), hasPlace(location) ? copyButton(`${location.file}:${location.line}`) : null,
    location && location.function ? el("span.soft", "in ", el("code", location.function)) : null, extra);
}

function facts(pairs) {
  return el("dl.facts", pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)
    .map(([name, value]) => [el("dt", name), el("dd", value)]));
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas as sharp as the screen; returns its context in CSS pixels.
function fitCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
