// Plays a timeline: rows that fill as time passes. All that it shows came from the server; nothing is read as markup.
const make = (parent, name, kind = "", text = "") => {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
};
const percent = (share) => `${(100 * share).toFixed(3)}%`;
const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const digits = (value) => value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const clock = (s, end) => end >= 1 ? `${digits(s)} s` : end >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;

function build(root, data) {
  root.replaceChildren();
  const box = make(root, "div", data.large ? "timeline large" : "timeline");
  const top = make(box, "div", "top");
  make(top, "strong", "title", data.title);
  const time = make(top, "span", "time");
  time.setAttribute("aria-hidden", "true");
  const button = make(top, "button", "again", "Restart");
  button.type = "button";
  const plot = make(box, "div", "plot");
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${data.title}. ${data.says}`);
  const rows = data.rows.map((of) => {
    const label = make(plot, "div", "label", of.label), result = make(label, "span", "result");
    const track = make(plot, "div", "track");
    const bars = of.spans.map(([, , start]) => {
      const bar = make(track, "div", "bar");
      bar.style.left = percent(start);
      bar.style.background = of.colour;
      return bar;
    });
    return { of, bars, result };
  });
  const marks = data.marks.map((of) => {
    const line = make(plot, "div", "mark");
    const flag = make(line, "span", of.place > 0.5 ? "flag left" : "flag", of.label);
    line.style.marginLeft = percent(of.place);
    return { of, line, flag };
  });
  const says = make(box, "p", "says", data.says);
  make(box, "p", "origin", data.origin);
  return { time, button, rows, marks, says };
}

function show(parts, data, now) {
  const done = now >= data.end;
  parts.says.classList.toggle("waits", data.large && !done);  // a race keeps its result to its end
  parts.time.textContent = data.covered && data.marks.length ? "" : clock(Math.min(now, data.end), data.end);
  for (const { of, bars, result } of parts.rows) {
    of.spans.forEach(([begin, finish, start, end], at) => {
      const passed = finish > begin ? Math.min(1, Math.max(0, (now - begin) / (finish - begin))) : Number(now >= finish);
      bars[at].style.width = percent((end - start) * passed);
    });
    const last = of.spans.length ? of.spans[of.spans.length - 1][1] : 0;
    result.textContent = now >= last || done ? of.result : "";
  }
  for (const { of, line } of parts.marks) line.classList.toggle("passed", done || now >= of.at);
}

function play(state) {
  cancelAnimationFrame(state.frame);
  const { parts, data } = state;
  if (still()) { show(parts, data, data.end); return; }
  const began = performance.now();
  const step = (at) => {
    const now = (at - began) / 1000 * data.speed;
    show(parts, data, Math.max(0, now));
    if (now < data.end) state.frame = requestAnimationFrame(step);
  };
  state.frame = requestAnimationFrame(step);
}

export default function ({ data, parentElement }) {
  const told = JSON.stringify(data), before = parentElement.crossoverTimeline;
  if (before && before.told === told) return;
  if (before) { cancelAnimationFrame(before.frame); before.root.remove(); }
  const root = make(parentElement, "div"), state = { told, data, root, frame: 0 };
  state.parts = build(root, data);
  parentElement.crossoverTimeline = state;
  state.parts.button.hidden = still();
  state.parts.button.addEventListener("click", () => play(state));
  play(state);
  return () => cancelAnimationFrame(state.frame);
}
