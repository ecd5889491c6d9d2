"""The page of ``--page``: models, load and latency, drawn from the statistics that the server gives to everybody else too."""

from __future__ import annotations

__all__ = ["HEADERS", "PAGE"]

# Nothing is loaded from elsewhere, and names of models are written as text.
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"
HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)

PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>fastlayers serve</title>
<style>
:root { color-scheme: light dark; --line: #8884; --bar: #3b82f6; --bad: #dc2626; --good: #16a34a }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 }
#state { color: var(--good) } #state.bad { color: var(--bad) }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0 }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem 1rem; min-width: 8rem }
.card b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
svg { width: 100%; height: 5rem; border: 1px solid var(--line); border-radius: .5rem; margin-bottom: 1.2rem }
polyline { fill: none; stroke: var(--bar); stroke-width: 1.5; vector-effect: non-scaling-stroke }
small { opacity: .7 }
.wide { overflow-x: auto }
h2 { font-size: 1rem; margin: 1.2rem 0 0 }
pre { background: #8882; border-radius: .5rem; padding: .6rem; overflow-x: auto; user-select: all }
#missing { margin-top: 1.2rem } #missing td { text-align: left }
#missing td:last-child { overflow-wrap: anywhere; color: var(--bad) }
</style></head><body>
<h1>fastlayers serve <small id="version"></small> <small id="state">...</small></h1>
<div class="cards" id="cards"></div>
<small>requests per second, the last two minutes (at most <span id="most">0</span>)</small>
<svg viewBox="0 0 120 100" preserveAspectRatio="none"><polyline id="line" points=""></polyline></svg>
<div class="wide">
<table><thead><tr><th>model</th><th>version</th><th>requests</th><th>per second</th><th>refused</th><th>failed</th>
<th>mean ms</th><th>queue ms</th><th>run ms</th><th>rows a run</th></tr></thead><tbody id="rows"></tbody></table></div>
<table id="missing"></table>
<div id="about"></div>
<script>
"use strict";
const $ = id => document.getElementById(id), history = [];
let before = null, at = 0, told = "";
const ms = part => part.count ? (part.ns / part.count / 1e6).toFixed(2) : "-";
const since = (now, old) => old && now.count >= old.count ? {count: now.count - old.count, ns: now.ns - old.ns} : now;
const gauge = (text, name) => {
  const found = text.match(new RegExp("^fastlayers_" + name + " (\\\\S+)", "m"));
  return found ? Number(found[1]) : 0;
};
// What is wrong with the server, or took too long; a request is refused for every other reason. A path that is none is nothing.
const BAD = ["failed", "timeout"], NONE = ["ok", "unknown path"];
const count = (text, start, bad) => {
  let found = 0;
  for (const line of text.split("\\n")) {
    const label = line.startsWith(start) && line.match(/(?:outcome|reason)="([^"]*)"/);
    if (label && BAD.includes(label[1]) === bad && !NONE.includes(label[1])) found += Number(line.slice(line.lastIndexOf(" ")));
  }
  return found;
};
const quoted = text => JSON.stringify(text).slice(1, -1);
const add = (parent, tag, text) => {
  const made = document.createElement(tag);
  made.textContent = text; parent.append(made);
  return made;
};
const size = shape => shape.reduce((all, n) => all * n, 1);
const zeros = (type, n) => {
  const zero = type === "BYTES" ? '""' : type === "BOOL" ? "false" : "0";
  return n <= 16 ? Array(n).fill(zero).join() : `'$(yes '${zero}' | head -${n} | paste -sd,)'`;
};
const shell = text => text.replaceAll("'", "'\\\\''");
const tensor = t => {
  const shape = t.shape.map(n => n < 0 ? 1 : n), head = {name: t.name, datatype: t.datatype, shape};
  return shell(JSON.stringify(head).slice(0, -1)) + `,"data":[${zeros(t.datatype, size(shape))}]}`;
};
const texts = model => {
  if (model.inputs.some(t => t.name.startsWith("past_key_values"))) return ["completions", {prompt: "Once", max_tokens: 20}];
  if (model.outputs.some(t => t.name === "logits")) return ["rerank", {query: "a question", documents: ["an answer", "another"]}];
  return ["embeddings", {input: ["a question", "an answer"]}];
};
async function describe(models) {
  const key = JSON.stringify(models.map(m => [m.name, m.version]));
  if (key === told) return;
  const get = path => fetch(path).then(r => r.json()), path = m => "v2/models/" + encodeURIComponent(m.name);
  const listed = (await get("v1/models")).data.map(m => m.id);
  const made = await Promise.all(models.map(m => get(path(m) + "/versions/" + m.version)));
  $("about").replaceChildren();
  made.forEach((model, i) => {
    add($("about"), "h2", models[i].name + (model.versions.length > 1 ? ", version " + models[i].version : ""));
    const sides = side => model[side].map(t => `${t.name} ${t.datatype} [${t.shape.map(n => n < 0 ? "any" : n).join(", ")}]`);
    add($("about"), "small", sides("inputs").join("; ") + " \xe2\x86\x92 " + sides("outputs").join("; "));
    const base = location.href.replace(/[^/]*$/, "");
    let line;
    if (listed.includes(model.name)) {
      const [kind, body] = texts(model);
      line = `curl ${base}v1/${kind} -d '${shell(JSON.stringify({model: model.name, ...body}))}'`;
    } else {
      const place = base + path(models[i]) + (model.versions.length > 1 ? "/versions/" + models[i].version : "") + "/infer";
      line = `echo '{"inputs":[${model.inputs.map(tensor).join()}]}' | curl ${shell(place)} -d @-`;
    }
    add($("about"), "pre", line);
  });
  told = key;
}
async function turn() {
  try {
    const [stats, text, ready, about, index] = await Promise.all([
      fetch("v2/models/stats").then(r => r.json()), fetch("metrics").then(r => r.text()),
      fetch("v2/health/ready").then(r => r.ok), fetch("v2").then(r => r.json()),
      fetch("v2/repository/index", {method: "POST"}).then(r => r.json())]);
    const now = performance.now() / 1000, seconds = now - at, rows = $("rows");
    $("version").textContent = about.version;
    $("state").textContent = ready ? "ready" : "not ready";
    $("state").className = ready ? "" : "bad";
    rows.replaceChildren();
    let rate = 0;
    for (const model of stats.model_stats) {
      const key = model.name + "/" + model.version, old = before && before[key], s = model.inference_stats;
      const good = since(s.success, old && old.inference_stats.success);
      const each = old ? good.count / seconds : 0, row = add(rows, "tr", "");
      const recent = part => ms(old && good.count ? since(s[part], old.inference_stats[part]) : s[part]);
      const runs = model.batch_stats.map(b => [b.batch_size, b.compute_infer.count]);
      const total = runs.reduce((all, [, n]) => all + n, 0), of = runs.reduce((all, [size, n]) => all + size * n, 0);
      const start = "fastlayers_requests_total{model=\\"" + quoted(model.name) + "\\",", mine = text.split("\\n").filter(
        line => line.includes("version=\\"" + model.version + "\\"")).join("\\n");
      rate += each;
      for (const value of [model.name, model.version, s.success.count, each.toFixed(1), count(mine, start, false),
        count(mine, start, true), recent("success"), recent("queue"), recent("compute_infer"),
        total ? (of / total).toFixed(2) : "-"])
        add(row, "td", value);
    }
    if (before) { history.push(rate); if (history.length > 120) history.shift(); }
    const most = Math.max(1, ...history);
    $("most").textContent = most.toFixed(0);
    $("line").setAttribute("points", history.map((r, i) => `${i + 120 - history.length},${98 - 96 * r / most}`).join(" "));
    $("cards").replaceChildren();
    for (const [value, what] of [[rate.toFixed(1), "requests per second"], [gauge(text, "requests_in_flight"), "in flight"],
      [gauge(text, "connections"), "connections"], [gauge(text, "sequences"), "sequences"],
      [count(text, "fastlayers_refused_total", false), "refused"],
      [count(text, "fastlayers_refused_total", true), "failed"]]) {
      const card = add($("cards"), "div", "");
      card.className = "card"; add(card, "b", value); add(card, "small", what);
    }
    $("missing").replaceChildren();
    for (const model of index.filter(m => m.state !== "READY")) {
      const row = add($("missing"), "tr", "");
      for (const value of [model.name, "version " + model.version, "not loaded: " + model.reason]) add(row, "td", value);
    }
    await describe(stats.model_stats);
    before = Object.fromEntries(stats.model_stats.map(m => [m.name + "/" + m.version, m])); at = now;
  } catch (error) { $("state").textContent = "no answer"; $("state").className = "bad"; }
  setTimeout(turn, 1000);
}
turn();
</script></body></html>
"""
