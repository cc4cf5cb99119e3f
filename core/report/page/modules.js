"use strict";
// The module tree, with where it went bad.

// From the dotted names of whatever is known: {name, children, ops, bad, culprit, onPath, first}.
function moduleTree() {
  const make = (name, full) => ({name, full, children: new Map(), ops: 0, bad: 0, culprits: [], steps: 0, type: ""});
  const root = make("", "");
  const at = (path) => {
    let node = root;
    let full = "";
    for (const part of String(path).split(".")) {
      full = full ? `${full}.${part}` : part;
      if (!node.children.has(part)) node.children.set(part, make(part, full));
      node = node.children.get(part);
    }
    return node;
  };
  for (const module of DATA.page.modules) if (module.path) at(module.path).type = module.type;
  const {timeline} = DATA.page;
  const ops = new Array(timeline.modules.length).fill(0);
  const bad = new Array(timeline.modules.length).fill(0);
  const badOps = new Set(timeline.bad);
  timeline.module.forEach((m, i) => { ops[m] += 1; if (badOps.has(i)) bad[m] += 1; });
  timeline.modules.forEach((path, m) => { if (path) { const node = at(path); node.ops += ops[m]; node.bad += bad[m]; } });
  DATA.diagnosis.culprits.forEach((culprit, i) => {
    if (culprit.step.module_path) at(culprit.step.module_path).culprits.push(i);
    const seen = new Set();
    for (const step of culprit.path) {
      if (!step.module_path || seen.has(step.module_path)) continue;
      seen.add(step.module_path);
      at(step.module_path).steps += 1;
    }
  });
  return root;
}

const treeTouched = (node) => node.culprits.length > 0 || node.steps > 0 || [...node.children.values()].some(treeTouched);
const treeGuilty = (node) => node.culprits.length > 0 || [...node.children.values()].some(treeGuilty);

function treeLabel(node) {
  const notes = [node.type, node.ops ? counted(node.ops, "recorded op") : "", node.bad ? `${count(node.bad)} of them not finite` : ""].filter(Boolean).join(", ");
  const mark = node.culprits.length
    ? node.culprits.map((i) => el("button.tiny", {type: "button", onclick: (event) => { event.preventDefault(); choose(i, "tree"); }}, `✕ went bad here: ${DATA.diagnosis.culprits[i].step.op_name}`))
    : node.steps ? el("span.sign.plain", "▸ passed it on") : treeGuilty(node) ? el("span.note", "went bad inside") : treeTouched(node) ? el("span.note", "passed it on inside") : null;
  return [el("code", node.name), notes ? [" ", el("span.note", notes)] : null, " ", mark];
}

// Open where it went bad, and at the top; the rest is filled in when it is opened.
function treeNode(node, depth) {
  const open = treeGuilty(node) || depth === 0;
  const children = [...node.children.values()];
  if (!children.length) return el("li", el(node.culprits.length ? "div.leaf.went-bad" : "div.leaf", treeLabel(node)));
  const branch = el("ul");
  const fill = () => { if (!branch.firstChild) branch.append(...children.map((child) => treeNode(child, depth + 1))); };
  const details = el("details", open ? {open: true} : null, el(node.culprits.length ? "summary.went-bad" : "summary", treeLabel(node)), branch);
  if (open) fill();
  else details.addEventListener("toggle", fill);
  return el("li", details);
}

function renderModules() {
  const root = moduleTree();
  const section = $("modules");
  section.hidden = root.children.size === 0;
  if (section.hidden) return;
  const outside = DATA.diagnosis.culprits.filter((culprit) => !culprit.step.module_path);
  const where = outside.length && !fromStart(outside[0]) ? ` ${outside.length === 1 ? "One culprit" : `${count(outside.length)} culprits`} ran outside of every module: ${outside[0].step.op_name}${
    hasPlace(outside[0].step.location) ? ` at ${placeText(outside[0].step.location)}` : ""}${outside.length > 1 ? " and others" : ""}.` : "";
  section.replaceChildren(el("h2", "Modules"), el("p.intro", `Where in the model it went bad, and which modules passed it on.${where}`),
    el("div.card.tree", el("ul", [...root.children.values()].map((child) => treeNode(child, 0)))));
}
