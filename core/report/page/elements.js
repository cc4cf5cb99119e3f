"use strict";
// Which elements of the culprit's output are bad: by class, by place, by sample of the batch, one by one.

function countsBar(counts) {
  const total = counts.numel || 1;
  const finite = total - badCount(counts);
  const parts = [["nan", "NaN", counts.nan], ["pos", "+Inf", counts.pos_inf], ["neg", "−Inf", counts.neg_inf], ["fin", "finite", finite]]
    .filter(([, , n]) => n > 0);
  const bar = el("div.counts", {"aria-hidden": "true"}, parts.map(([kind, , n]) => {
    const part = el(`span.${kind}`);
    part.style.flexGrow = String(n / total);
    return part;
  }));
  const percent = (n) => (n === total ? "100%" : n / total < 0.001 ? "under 0.1%" : `${(100 * n / total).toPrecision(2)}%`);
  return [bar, el("table", el("thead", el("tr", ["Class", "Elements", "Share", "First at"].map((name) => el("th", {scope: "col"}, name)))),
    el("tbody", parts.map(([kind, name, n]) => el("tr", el("td", el(`span.key.${kind}`, {"aria-hidden": "true"}), name),
      el("td", count(n)), el("td", percent(n)),
      el("td", el("code", {nan: list(counts.first_nan), pos: list(counts.first_pos_inf), neg: list(counts.first_neg_inf), fin: ""}[kind]))))))];
}

// Index ranges of the rows (or columns) of a map for which `test` holds: "0–3, 8".
function rangesText(length, test, size, extent) {
  const ranges = [];
  for (let i = 0; i < length; i += 1) {
    if (!test(i)) continue;
    const begin = Math.floor(i * extent / size);
    const end = Math.max(begin, Math.floor((i + 1) * extent / size) - 1);
    const last = ranges[ranges.length - 1];
    if (last && last[1] >= begin - 1) last[1] = end;
    else ranges.push([begin, end]);
  }
  if (ranges.length > 6) return "";
  return ranges.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

function heatSummary(map) {
  const {rows, cols, values} = map;
  const rowBad = (r) => values.slice(r * cols, (r + 1) * cols).some((v) => v > 0);
  const columnBad = (c) => { for (let r = 0; r < rows; r += 1) if (values[r * cols + c] > 0) return true; return false; };
  const allRows = Array.from({length: rows}, (_, r) => rowBad(r)).every(Boolean);
  const allColumns = Array.from({length: cols}, (_, c) => columnBad(c)).every(Boolean);
  if (values.every((v) => v >= 1)) return "Every element is bad.";
  const rowWords = allRows ? "in every row" : rangesText(rows, rowBad, rows, map.row_extent);
  const columnWords = allColumns ? "in every column" : rangesText(cols, columnBad, cols, map.col_extent);
  const part = (words, noun) => (words.startsWith("in ") ? words : words ? `only in ${noun}${/[–,]/.test(words) ? "s" : ""} ${words}` : `scattered over the ${noun}s`);
  if (rows === 1) return `Bad elements: ${part(columnWords, "position")}.`;
  return `Bad elements: ${part(rowWords, "row")}, ${part(columnWords, "column")}.`;
}

function heatMapView(map, counts) {
  const canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": `Map of the bad elements. ${heatSummary(map)} Arrow keys read it cell by cell.`});
  const readout = el("output.readout", {"aria-live": "polite"}, "Point at a cell, or walk the map with the arrow keys.");
  let at = null;
  const cellText = (r, c) => {
    const span = (i, size, extent) => {
      const begin = Math.floor(i * extent / size);
      const end = Math.max(begin, Math.floor((i + 1) * extent / size) - 1);
      return begin === end ? `${begin}` : `${begin}–${end}`;
    };
    const value = map.values[r * map.cols + c];
    const share = value >= 1 ? "all bad" : value > 0 ? `${Math.max(1, Math.round(value * 100))}% bad` : "finite";
    return `Row ${span(r, map.rows, map.row_extent)}, column ${span(c, map.cols, map.col_extent)}: ${share}`;
  };
  const draw = () => {
    const width = canvas.clientWidth || 480;
    const height = Math.max(24, Math.min(420, width * Math.max(0.08, Math.min(1, map.rows / map.cols))));
    canvas.style.height = `${height}px`;
    const context = fitCanvas(canvas, width, height);
    const w = width / map.cols;
    const h = height / map.rows;
    context.clearRect(0, 0, width, height);
    const color = style(counts && counts.nan ? "--nan" : "--inf");
    const gap = Math.min(w, h) > 7 ? 1 : 0;
    for (let r = 0; r < map.rows; r += 1) {
      for (let c = 0; c < map.cols; c += 1) {
        const value = map.values[r * map.cols + c];
        if (value <= 0) continue;
        // The share is told by the area of the square, the color only repeats it.
        const side = Math.min(1, Math.max(0.3, Math.sqrt(value)));
        context.globalAlpha = 0.55 + 0.45 * value;
        context.fillStyle = color;
        context.fillRect(c * w + w * (1 - side) / 2 + gap / 2, r * h + h * (1 - side) / 2 + gap / 2, Math.max(1, w * side - gap), Math.max(1, h * side - gap));
      }
    }
    context.globalAlpha = 1;
    // Where one sample ends and the next begins.
    if (map.row_groups > 1 && height / map.row_groups > 10) {
      context.fillStyle = style("--line-strong");
      for (let group = 1; group < map.row_groups; group += 1) context.fillRect(0, Math.round(height * group / map.row_groups), width, 1);
    }
    if (at) {
      context.lineWidth = 2;
      context.strokeStyle = style("--ink");
      context.strokeRect(at[1] * w + 1, at[0] * h + 1, Math.max(2, w - 2), Math.max(2, h - 2));
    }
  };
  const move = (r, c) => {
    at = [Math.max(0, Math.min(map.rows - 1, r)), Math.max(0, Math.min(map.cols - 1, c))];
    readout.textContent = cellText(...at);
    draw();
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    move(Math.floor((event.clientY - box.top) / box.height * map.rows), Math.floor((event.clientX - box.left) / box.width * map.cols));
  });
  canvas.addEventListener("keydown", (event) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    move(at ? at[0] + step[0] : 0, at ? at[1] + step[1] : 0);
  });
  REDRAW.set("heat", draw);
  return el("figure", el("div.heat", el("div.y", map.row_label), canvas, el("div.x", map.col_label)), readout,
    el("figcaption.small", heatSummary(map), map.rows < map.row_extent || map.cols < map.col_extent
      ? el("span.soft", ` One square stands for ${count(Math.ceil(map.row_extent / map.rows))} × ${count(Math.ceil(map.col_extent / map.cols))} elements; the larger it is drawn, the more of them are bad.`) : null));
}

function droppedSentence(culprit) {
  const dropped = culprit.dropped_samples || [];
  const more = culprit.dropped_sample_count - dropped.length;
  if (!dropped.length || culprit.dropped_sample_count === culprit.bad_sample_count) return null;
  return el("p.small", "Of these, ", el("code", dropped.join(", ")), more > 0 ? ` and ${count(more)} more` : "",
    " never reached the target: they were dropped, masked out or overwritten on the way.");
}

function samplesView(culprit) {
  const total = (culprit.step.shape || [])[0];
  const bad = new Set(culprit.bad_samples || []);
  if (!bad.size || !total) return null;
  const complete = culprit.bad_sample_count === bad.size;
  const heading = el("h3", "Samples of the batch (dimension 0)");
  if (!complete || total > 128) {
    return [heading, el("p", `${count(culprit.bad_sample_count)} of ${count(total)}: `, el("code", [...bad].join(", ")), complete ? "" : " and more"), droppedSentence(culprit)];
  }
  return [heading, el("p.small", `${count(culprit.bad_sample_count)} of ${count(total)} hold bad elements:`),
    el("ol.samples", Array.from({length: total}, (_, i) => el(bad.has(i) ? "li.bad" : "li", bad.has(i) ? ["✕ ", el("span.visually-hidden", "bad: ")] : null, String(i)))), droppedSentence(culprit)];
}

function witnessView(culprit) {
  const witness = culprit.witness || [];
  if (!witness.length) return null;
  return [el("h3", "Witnesses"), el("ul.witness", witness.map((element) => el("li", el("code", element.text || numberText(element.value)), (element.index || []).length ? [" at ", el("code", list(element.index))] : null)))];
}

function renderElements(culprit) {
  const section = $("elements");
  section.hidden = !culprit;
  REDRAW.delete("heat");
  if (!culprit) return;
  const {counts} = culprit.step;
  const map = DATA.page.heat_maps.find((candidate) => candidate.seq === culprit.step.seq);
  section.replaceChildren(el("h2", "Which elements"), el("p.intro", `The output of ${culprit.step.op_name}: ${shapeText(culprit.step.shape)} ${dtypeText(culprit.step.dtype)}.`),
    el("div.columns", el("div.card", el("h2", "By class"), counts ? countsBar(counts) : "Not known.", samplesView(culprit), witnessView(culprit)),
      el("div.card", el("h2", "By place"), map ? heatMapView(map, counts) : el("p.soft", "Which elements are bad was not kept for this op."))));
  if (map) REDRAW.get("heat")();
}
