"use strict";
// Puts the page together. Runs once the document is there, so that the order of the files does not matter.

const DATA = {diagnosis: null, page: null};
const CHOSEN = {at: 0};
const REDRAW = new Map();  // canvases that must be drawn anew when the size or the theme changes

const SECTIONS = [["verdict", "Verdict"], ["path", "Path"], ["elements", "Elements"], ["modules", "Modules"], ["timeline", "Last ops"],
  ["culprits", "Culprits"], ["deliberate", "Masks"], ["blind", "Blind spots"]];

function choose(i, from) {
  CHOSEN.at = i;
  const culprit = DATA.diagnosis.culprits[i];
  renderVerdict(i);
  renderPath(culprit);
  renderElements(culprit);
  renderCulprits();
  if (!from) return;
  announce(`Culprit ${i + 1}: ${culprit.headline || culprit.step.op_name}`);
  if (from === "switch") $("verdict").querySelector('.switch [aria-pressed="true"]')?.focus();
  else { $("verdict").scrollIntoView(); $("verdict").focus({preventScroll: true}); }
}

function renderCulprits() {
  const {culprits} = DATA.diagnosis;
  const section = $("culprits");
  section.hidden = culprits.length < 2;
  if (section.hidden) return;
  section.replaceChildren(el("h2", "All culprits"), el("p.intro", "Each made a non-finite value of its own that reached the tensor that you asked about; in the order in which they ran."),
    el("ol.card.culprits", culprits.slice(0, 200).map((culprit, i) => el("li", sign(culprit.step.counts), " ", el("b", `${i + 1}. ${culprit.headline || culprit.step.op_name}`),
      el("div.soft.small.break", [placeText(culprit.step.location), moduleText(culprit.step), passText(culprit.step), `op #${culprit.step.seq}`,
        culprit.times > 1 ? `${count(culprit.times)} times, this is the first` : "", countsSentence(culprit.step.counts), culprit.certain === false ? "not certain" : ""].filter(Boolean).join(" · ")),
      el("button.tiny", {type: "button", "aria-current": String(i === CHOSEN.at), "aria-label": `Look at culprit ${i + 1}`, onclick: () => choose(i, "list")}, i === CHOSEN.at ? "Shown above" : "Look at this one"))),
      culprits.length > 200 ? el("li.soft", `and ${count(culprits.length - 200)} more`) : null));
}

function renderDeliberate() {
  const steps = DATA.diagnosis.deliberate || [];
  const section = $("deliberate");
  section.hidden = !steps.length;
  if (section.hidden) return;
  section.replaceChildren(el("h2", "Infinities on purpose"), el("p.intro", "Your program put these there itself, as masks and the like. They are innocent and listed for the record."),
    el("ul.card.plain-list", steps.slice(0, 100).map((step) => el("li", sign(step.counts), " ", el("b", step.op_name), ` ${shapeText(step.shape)}, ${countsSentence(step.counts)}`,
      el("div.soft.small.break", [placeText(step.location), moduleText(step), `op #${step.seq}`].filter(Boolean).join(" · ")))),
      steps.length > 100 ? el("li.soft", `and ${count(steps.length - 100)} more`) : null));
}

function renderBlind() {
  const spots = DATA.diagnosis.blind_spots || [];
  $("blind").replaceChildren(el("h2", "Blind spots"), el("p.intro", "What the trace did not see. A culprit could hide there."),
    spots.length ? el("ul.card.plain-list", spots.map((spot) => el("li", el("b", spot.text || spot.kind), el("div.soft.small", `${spot.kind} · ${count(spot.count)}`))))
      : el("p.card", el("span.sign.good", "none"), ` ${counted(DATA.diagnosis.total_ops, "op")} traced, nothing left out.`));
}

function setUpTheme() {
  const button = $("theme");
  const names = ["auto", "light", "dark"];
  const show = (name) => { document.documentElement.dataset.theme = name; button.textContent = `Theme: ${name}`; REDRAW.forEach((draw) => draw()); };
  // Storage is forbidden in a sandboxed frame (a notebook): then the choice lasts as long as the page.
  let saved = "auto";
  try { saved = localStorage.getItem("sherlorch-theme") || "auto"; } catch { saved = "auto"; }
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    show(next);
    announce(`Theme: ${next}`);
    try { localStorage.setItem("sherlorch-theme", next); } catch { /* as above */ }
  });
  show(names.includes(saved) ? saved : "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => REDRAW.forEach((draw) => draw()));
}

function start() {
  const {diagnosis, page} = JSON.parse($("sherlorch-data").textContent);
  Object.assign(DATA, {diagnosis, page});
  for (const [id, name] of SECTIONS.slice(1)) $("main").append(el("section", {id, "aria-label": name, tabindex: "-1"}));
  document.body.append(el("div.visually-hidden", {id: "announcer", role: "status", "aria-live": "polite"}));
  choose(0, "");
  renderModules();
  renderTimeline();
  renderDeliberate();
  renderBlind();
  $("sections").append(el("ul", SECTIONS.filter(([id]) => !$(id).hidden).map(([id, name]) => el("li", el("a", {href: `#${id}`}, name)))));
  $("footer").append(el("p", `${counted(diagnosis.total_ops, "op")} traced. Source lines are as they stood when the page was written. Nothing on this page leaves your machine: it loads and sends nothing.`));
  setUpTheme();
  matchMedia("print").addEventListener("change", () => REDRAW.forEach((draw) => draw()));
  let pending = 0;
  window.addEventListener("resize", () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(() => REDRAW.forEach((draw) => draw())); });
}
document.addEventListener("DOMContentLoaded", start);
