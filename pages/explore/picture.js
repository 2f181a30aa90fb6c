// The live picture of Explore. Everything that follows the slider is worked out here from what the server sent once;
// one value goes back when the slider is let go. Nothing that the server sends is read as markup.
const NS = "http://www.w3.org/2000/svg";
const HTML = `<div class="picture">
<div class="said"><p class="say"></p><p class="more"></p></div>
<div class="pick"><label for="size"></label><input id="size" type="range" min="0" step="1"><output for="size"></output>
<select class="as" aria-label="Shown over the size"><option value="step">time per step</option>
<option value="epoch">time per epoch</option><option value="speedup">speedup</option></select></div>
<ul class="legend"></ul>
<svg class="curve" role="img"></svg>
<div class="two"><section><p class="title">One step</p><svg class="step" role="img"></svg></section>
<section class="layers"><p class="title network-title"></p><svg class="network" role="img"></svg></section></div>
<p class="cost"></p>
<p class="live" aria-live="polite"></p></div>`;
const HEIGHT = 220, LEFT = 62, RIGHT = 14, TOP = 18, BOTTOM = 34, ROW = 24, GREY = "#808080";
const HALO = { "paint-order": "stroke", stroke: "var(--st-background-color)", "stroke-width": 4 };

const put = (parent, name, attributes = {}, text = "") => {
  const made = document.createElementNS(NS, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
};
const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
const duration = (s) => s >= 120 ? `${digits(s / 60)} min` : s >= 1 ? `${digits(s)} s`
  : s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;
const count = (value) => value.toLocaleString("en-US");
const middle = (low, high) => Math.sqrt(low * high);
const isPredicted = (data) => data.band && data.band.low.some((low) => low != null);

// Between two measured sizes a time is read off on log scales; beyond them nothing is said.
function between(points, x) {
  if (!points.length || x < points[0][0] || x > points[points.length - 1][0]) return null;
  for (let at = 0; at < points.length; at++) {
    if (points[at][0] === x) return points[at][1];
    if (points[at][0] > x) {
      const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
      if (!(y0 > 0 && y1 > 0)) return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
      return y0 * (y1 / y0) ** (Math.log(x / x0) / Math.log(x1 / x0));
    }
  }
  return null;
}

// Every curve in what is shown over the size: a list of [size, value, low, high].
function shape(data, as) {
  const steps = (x) => data.steps[data.values.indexOf(x)] ?? between(data.values.map((v, i) => [v, data.steps[i]]), x);
  const scaled = (points) => as === "epoch" ? points.map(([x, ...y]) => [x, ...y.map((one) => one * steps(x))]) : points;
  const band = data.band && data.values.map((x, i) => [x, data.band.low[i], data.band.high[i]])
    .filter(([, low]) => low != null);
  if (as !== "speedup") {
    return { curves: data.curves.map((of) => ({ ...of, points: scaled(of.points) })), band: band && scaled(band) };
  }
  const pairs = data.curves.filter((of) => of.speedup.length).map((of) => ({ ...of, points: of.speedup }));
  pairs.push(...data.published.filter((of) => of.points.length).map((of) => ({ ...of, mark: "published", colour: GREY })));
  const base = data.curves.length ? data.curves[0].points : [];
  const ratio = band && band.map(([x, low, high]) => [x, between(base, x) / high, between(base, x) / low])
    .filter(([, low]) => low > 0);
  return { curves: pairs, band: ratio };
}

function ticks(low, high, linear) {
  if (linear) {
    const step = Math.max(1, Math.ceil((high - low) / 12));
    return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
  }
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const lead of high / low > 300 ? [1] : [1, 2, 5]) found.push(lead * 10 ** power);
  }
  return found.filter((one) => one >= low * 0.999 && one <= high * 1.001);
}

function hatch(svg, id, colour) {
  const pattern = put(put(svg, "defs"), "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  put(pattern, "rect", { width: 6, height: 6, fill: colour, "fill-opacity": 0.18 });
  put(pattern, "rect", { width: 2, height: 6, fill: colour, "fill-opacity": 0.8 });
}

function mark(parent, kind, x, y, colour) {
  if (kind === "recorded") {
    put(parent, "path", { d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`, fill: colour });
  } else if (kind === "wins") {
    put(parent, "path", { d: `M${x} ${y}l5 -9l-10 0z`, fill: "var(--st-background-color)", stroke: colour, "stroke-width": 1.5 });
  } else {
    const hollow = kind === "published";
    put(parent, "circle", { cx: x, cy: y, r: 4, fill: hollow ? "none" : colour, stroke: colour, "stroke-width": 1.5 });
  }
}

function drawCurve(root, state) {
  const { data } = state, svg = root.querySelector(".curve"), width = svg.clientWidth || 600;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.style.height = `${HEIGHT}px`;
  hatch(svg, "band", GREY);
  const shown = shape(data, state.as);
  const ys = [...shown.curves.flatMap((of) => of.points.flatMap((p) => p.slice(1))), ...(shown.band || []).flatMap((p) => p.slice(1))]
    .filter((y) => y > 0);
  if (state.as === "speedup") ys.push(1);
  const xs = [...data.values, ...shown.curves.flatMap((of) => of.points.map((p) => p[0]))];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const linear = x1 / x0 <= 16;
  let [y0, y1] = ys.length ? [Math.min(...ys) / 1.25, Math.max(...ys) * 1.25] : [1e-4, 1e-2];
  const right = width - RIGHT, bottom = HEIGHT - BOTTOM, top = TOP + 18 * Math.max(0, data.crossovers.length - 1);
  const X = (x) => LEFT + (right - LEFT) * (linear ? (x - x0) / (x1 - x0 || 1) : Math.log(x / x0) / (Math.log(x1 / x0) || 1));
  const Y = (y) => bottom - (bottom - top) * Math.log(y / y0) / Math.log(y1 / y0);
  let last = -99;
  if (!ys.length) put(svg, "text", { x: LEFT, y: TOP - 6, class: "faint" },
    "Nothing is measured or predicted yet");
  for (const y of ys.length ? ticks(y0, y1, false).reverse() : []) {
    if (Y(y) - last < 16) continue;
    last = Y(y);
    put(svg, "line", { x1: LEFT, x2: right, y1: Y(y), y2: Y(y), class: "grid" });
    put(svg, "text", { x: LEFT - 6, y: Y(y) + 4, "text-anchor": "end", class: "faint" },
      state.as === "speedup" ? `${digits(y)}×` : duration(y));
  }
  last = -99;
  for (const x of ticks(x0, x1, linear)) {
    if (X(x) - last < 44) continue;
    last = X(x);
    put(svg, "text", { x: X(x), y: bottom + 15, "text-anchor": "middle", class: "faint" }, count(x));
  }
  put(svg, "text", { x: (LEFT + right) / 2, y: HEIGHT - 3, "text-anchor": "middle", class: "faint" },
    `${data.axis.title}${linear ? "" : " (log scale)"}`);
  const ranges = data.crossovers.map((range, at) => [range, TOP - 6 + 18 * at]);
  if (data.band && data.band.cheaper) ranges.push([data.band.cheaper, bottom - 5]);
  for (const [range, y] of ranges) {
    const [a, b] = [Math.max(x0, range.low), Math.min(x1, range.high)].map(X);
    put(svg, "rect", { x: a, y: top, width: Math.max(2, b - a), height: bottom - top, fill: GREY, "fill-opacity": 0.2 });
    const label = put(svg, "text", { y, class: "strong", ...HALO }, range.words);
    label.setAttribute("x", Math.max(0, Math.min(a, right - label.getComputedTextLength())));
  }
  if (shown.band && shown.band.length) {
    const path = [...shown.band.map(([x, , high]) => `${X(x)} ${Y(high)}`), ...[...shown.band].reverse().map(([x, low]) => `${X(x)} ${Y(low)}`)];
    put(svg, "path", { d: `M${path.join("L")}Z`, fill: "url(#band)", stroke: GREY, class: "band" });
    const room = ([x, low, high]) => Math.min(...shown.curves.map((of) => between(of.points, x)).filter((y) => y > 0)
      .map((y) => Math.abs(Y(y) - Y(middle(low, high)))), 60) + 20 * (Math.min(X(x) - LEFT, right - X(x)) > 40);
    const [x, low, high] = shown.band.reduce((best, one) => room(one) > room(best) ? one : best);
    put(svg, "text", { x: X(x), y: Y(middle(low, high)) + 4, "text-anchor": "middle", class: "strong", ...HALO }, "predicted");
  }
  if (state.as === "speedup") put(svg, "line", { x1: LEFT, x2: right, y1: Y(1), y2: Y(1), stroke: GREY, "stroke-width": 1.5 });
  for (const of of data.published) {
    if (of.wins_from >= x0 && of.wins_from <= x1) mark(svg, "wins", X(of.wins_from), bottom, "var(--st-text-color)");
  }
  for (const of of shown.curves) {
    const line = of.points.map(([x, y]) => `${X(x)} ${Y(y)}`);
    if (line.length > 1 && of.mark !== "published") {
      put(svg, "path", { d: `M${line.join("L")}`, fill: "none", stroke: of.colour, "stroke-width": 2,
        "stroke-dasharray": of.mark === "measured" ? "none" : "5 3" });
    }
    for (const [x, y, low, high] of of.points) {
      if (low && high) put(svg, "line", { x1: X(x), x2: X(x), y1: Y(low), y2: Y(high), stroke: of.colour, "stroke-width": 3, "stroke-opacity": 0.5 });
      mark(svg, of.mark, X(x), Y(y), of.colour);
    }
  }
  state.moving = put(svg, "g", { class: "moving" });
  state.scales = { X, Y, shown, top, bottom, right };
  svg.setAttribute("aria-label", `${root.querySelector(".as").selectedOptions[0].text} against ${data.axis.title}: `
    + [...shown.curves.map((of) => of.name), ...(isPredicted(data) ? [`${data.band.name}, predicted`] : [])].join("; "));
}

function drawLine(state) {
  const { data, place, scales } = state, x = data.values[place], at = scales.X(x);
  state.moving.replaceChildren();
  put(state.moving, "line", { x1: at, x2: at, y1: scales.top, y2: scales.bottom, class: "here" });
  for (const of of scales.shown.curves.filter((one) => one.mark !== "published")) {
    const y = between(of.points, x);
    if (y > 0) put(state.moving, "circle", { cx: at, cy: scales.Y(y), r: 5, fill: "var(--st-background-color)", stroke: of.colour, "stroke-width": 2.5 });
  }
}

const IDLE = [(share, waits) => `waits ${share} % of the step for ${waits} (predicted)`,
  (share, waits) => `waits ${share} % for ${waits} (predicted)`, (share) => `waits ${share} % (predicted)`];

// The bars of one step: [label, [[part, begin, length, modelled], ...], end, words from long to short]
function bars(state) {
  const { data, place } = state, x = data.values[place], rows = [];
  for (const of of data.curves) {
    const step = between(of.points, x);
    if (!(step > 0)) continue;
    const parts = Object.entries(of.parts).map(([part, points]) => [part, between(points, x)]).filter(([, s]) => s > 0);
    const sum = parts.reduce((all, [, s]) => all + s, 0);
    let begin = 0;
    const bits = sum ? parts.map(([part, s]) => [part, (begin += s * step / sum) - s * step / sum, s * step / sum, false]) : [["step", 0, step, false]];
    rows.push([of.name, bits, step, [], of.colour]);
  }
  const band = data.band, of = (part) => band.parts[part] && band.parts[part].low[place] != null
    ? middle(band.parts[part].low[place] || 1e-12, band.parts[part].high[place] || 1e-12) : 0;
  if (band && band.low[place] != null) {
    const [loader, copy, launches, work, update] = ["loader", "copy", "launches", "arithmetic", "update"].map(of);
    const begin = loader + copy, end = begin + Math.max(launches, work + update);
    rows.push([`${band.name}: host`, [["loader", 0, loader, true], ["copy", loader, copy, true], ["launches", begin, launches, true]], end, [], GREY]);
    const idle = 1 - (work + update) / end, pieces = Math.min(24, Math.max(1, data.launches[place] || 1)), bits = [];
    if (launches > work + update) {  // work in pieces, with a gap before each: the GPU waits for its next launch
      for (let i = 0; i < pieces; i++) {
        const slot = launches / pieces, part = i / pieces < work / (work + update) ? "arithmetic" : "update";
        bits.push([part, begin + slot * (i + 1) - slot * (work + update) / launches, slot * (work + update) / launches, true]);
      }
    } else bits.push(["arithmetic", begin, work, true], ["update", begin + work, update, true]);
    const waits = launches > work + update ? "its next launch" : loader > copy ? "the loader" : "the copy";
    rows.push([`${band.name}: GPU`, bits, end, idle > 0.15 ? IDLE.map((say) => say(Math.round(100 * idle), waits)) : [], GREY]);
  }
  return rows;
}

// The height of both lower parts: room for the bars of every device, at any size of the slider.
const tall = ({ data }) => Math.max(4, data.curves.length + (isPredicted(data) ? 2 : 0)) * (ROW + 14) + 16;

function drawStep(root, state) {
  const svg = root.querySelector(".step"), width = svg.clientWidth || 400, rows = bars(state);
  svg.replaceChildren();
  const height = tall(state);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  for (const part in state.data.part_colours) hatch(svg, `part-${part}`, state.data.part_colours[part]);
  const longest = Math.max(...rows.map((row) => row[2])), names = [];
  rows.forEach(([name, bits, end, words, colour], row) => {
    const top = row * (ROW + 14) + 15, room = width - 60;
    const label = put(svg, "text", { x: 0, y: top - 4, class: "faint" });
    for (const said of words.length ? words : [""]) {  // the longest that fits
      label.textContent = said ? `${name} ${said}` : name;
      if (label.getComputedTextLength() <= width) break;
    }
    for (const [part, begin, length, modelled] of bits) {
      const w = room * length / longest, fill = state.data.part_colours[part] || colour;
      put(svg, "rect", { x: room * begin / longest, y: top, width: Math.max(0.5, w), height: ROW - 6,
        fill: modelled ? `url(#part-${part})` : fill, stroke: modelled ? fill : "none" });
      const title = state.data.part_titles[part] || part;
      if (w > 7 * title.length) put(svg, "text", { x: room * begin / longest + 4, y: top + 13, ...(modelled ? HALO : { style: "fill:#14191F" }) }, title);
      else if (length / longest > 0.02 && bits.length < 6) names.push(title);
    }
    put(svg, "text", { x: room * end / longest + 5, y: top + 13, class: "strong" }, duration(end));
  });
  if (!rows.length) put(svg, "text", { x: 0, y: 16, class: "faint" }, "No time is known at this size yet: Run measures it.");
  svg.setAttribute("aria-label", rows.map(([name, bits, end, words]) => `${name}: ${duration(end)}`
    + (bits.length < 6 ? ` (${bits.map(([part, , s]) => `${state.data.part_titles[part] || part} ${duration(s)}`).join(", ")})` : "")
    + (words.length ? `, ${words[0]}` : "")).join("; ") || "No time is known at this size");
}

function drawNetwork(root, state) {
  const svg = root.querySelector(".network"), width = svg.clientWidth || 300, height = tall(state);
  const all = state.data.layers[state.place] || [], layers = all.filter((layer) => layer.parameters);
  root.querySelector(".network-title").textContent = state.data.figures[state.place];
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const slot = width / Math.max(1, layers.length), most = Math.max(...layers.map((layer) => layer.parameters), 2);
  const shorten = (value) => {
    const [scale, unit] = value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
    return `${Number((value / scale).toPrecision(slot > 50 ? 3 : 2))}${unit}`;
  };
  const counts = layers.map((layer) => shorten(layer.parameters));
  const every = Math.ceil(Math.max(...counts.map((one) => 7 * one.length + 2), 1) / slot);
  const hasShapes = layers.every((layer) => slot > 6.5 * layer.shape.length);
  layers.forEach((layer, at) => {
    const high = 14 + (height - 62) * Math.log(layer.parameters + 1) / Math.log(most + 1);
    const x = at * slot + slot * 0.15, w = slot * 0.7, y = (height - 30 - high) / 2 + 4;
    const box = put(svg, "rect", { x, y, width: w, height: high, rx: 3, fill: "var(--st-primary-color)", "fill-opacity": 0.75 });
    put(box, "title", {}, `${layer.name} ${layer.shape}: ${count(layer.parameters)} parameters`);
    if (at) put(svg, "line", { x1: x - slot * 0.3, x2: x, y1: (height - 30) / 2 + 4, y2: (height - 30) / 2 + 4, class: "here" });
    if ((layers.length - 1 - at) % every === 0) put(svg, "text", { x: x + w / 2, y: height - 16, "text-anchor": "middle" }, counts[at]);
    if (hasShapes) put(svg, "text", { x: x + w / 2, y: height - 2, "text-anchor": "middle", class: "faint" }, layer.shape);
  });
  svg.setAttribute("aria-label", `Network: ${layers.map((layer) => `${layer.name} ${layer.shape}, ${count(layer.parameters)} parameters`).join("; ")}`);
}

function drawLegend(root, state) {
  const legend = root.querySelector(".legend");
  legend.replaceChildren();
  const add = (name, draw) => {
    const item = document.createElement("li"), svg = put(item, "svg", { "aria-hidden": "true", viewBox: "0 0 22 12" });
    draw(svg);
    item.append(name);
    legend.append(item);
    return item;
  };
  for (const of of state.data.curves) {
    add(of.note ? `${of.name} (${of.note})` : of.name, (svg) => {
      put(svg, "line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke: of.colour, "stroke-width": 2 });
      mark(svg, of.mark, 11, 6, of.colour);
    });
  }
  for (const of of state.data.published) {
    const said = [...(of.points.length ? ["speedups"] : []), ...(of.wins_from ? [`GPU faster from ${count(of.wins_from)}`] : [])];
    if (!said.length) continue;
    const item = add(`Published: ${said.join(", ")} (`, (svg) => mark(svg, of.points.length ? "published" : "wins", 11, of.points.length ? 6 : 10, GREY));
    const source = /^https:/.test(of.address) ? document.createElement("a") : document.createElement("span");
    source.textContent = of.name;
    if (source.href !== undefined) Object.assign(source, { href: of.address, target: "_blank", rel: "noopener noreferrer" });
    item.append(source, ")");
  }
  if (isPredicted(state.data)) {
    add(`${state.data.band.name} (not here: predicted)`, (svg) => {
      hatch(svg, "key", GREY);
      put(svg, "rect", { width: 22, height: 12, fill: "url(#key)" });
    });
  }
}

function follow(root, state) {
  const { data, place } = state, value = data.values[place];
  const [first, ...rest] = data.sentences[place];
  root.querySelector(".say").textContent = first;
  root.querySelector(".more").textContent = rest.join(" ");
  root.querySelector(".cost").textContent = data.band ? data.band.costs[place] : "";
  root.querySelector("output").textContent = count(value);
  const slider = root.querySelector("input");
  slider.setAttribute("aria-valuetext", count(value));
  slider.style.setProperty("--part", place / Math.max(1, data.values.length - 1));
  drawLine(state);
  drawStep(root, state);
  drawNetwork(root, state);
}

function draw(root, state) {
  root.querySelector(".two").classList.toggle("alone", !state.data.layers.length);
  root.querySelector(".as [value=epoch]").hidden = !state.data.steps.length;
  drawLegend(root, state);
  drawCurve(root, state);
  follow(root, state);
}

function begin(host) {
  const template = document.createElement("template");
  template.innerHTML = HTML;
  host.appendChild(template.content);
  const root = host.querySelector(".picture"), state = { place: 0, as: "step", held: false };
  const slider = root.querySelector("input");
  slider.addEventListener("input", () => {
    state.held = true;
    state.place = Number(slider.value);
    follow(root, state);
  });
  slider.addEventListener("change", () => {
    state.held = false;
    root.querySelector(".live").textContent = [...state.data.sentences[state.place], root.querySelector(".cost").textContent].join(" ");
    if (state.data.sends) state.send("size", { axis: state.data.axis.name, value: state.data.values[state.place] });
  });
  root.querySelector(".as").addEventListener("change", (event) => {
    state.as = event.target.value;
    draw(root, state);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    draw(root, state);
  }).observe(root);
  return { root, state };
}

export default function ({ data: [data], parentElement, setStateValue }) {
  parentElement.crossoverPicture ??= begin(parentElement);
  const { root, state } = parentElement.crossoverPicture;
  const slider = root.querySelector("input"), before = state.data;
  const moved = !before || before.axis.name !== data.axis.name || before.values[before.place] !== data.values[data.place];
  const stands = before && before.values[state.place];
  state.data = data;
  state.send = setStateValue;
  if (!state.held) state.place = moved || !data.values.includes(stands) ? data.place : data.values.indexOf(stands);
  root.querySelector("label").textContent = data.axis.label;
  slider.max = data.values.length - 1;
  slider.value = state.place;
  draw(root, state);
}
