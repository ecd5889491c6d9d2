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
#missing { margin-top: 1.2rem } #missing td { text-align: left }
#missing td:last-child { overflow-wrap: anywhere; color: var(--bad) }
</style></head><body>
<h1>fastlayers serve <small id="version"></small> <small id="state">...</small></h1>
<div class="cards" id="cards"></div>
<small>requests per second, the last two minutes (at most <span id="most">0</span>)</small>
<svg viewBox="0 0 120 100" preserveAspectRatio="none"><polyline id="line" points=""></polyline></svg>
<div class="wide">
<table><thead><tr><th>model</th><th>version</th><th>requests</th><th>per second</th><th>failed</th><th>mean ms</th>
<th>queue ms</th><th>run ms</th><th>rows a run</th></tr></thead><tbody id="rows"></tbody></table></div>
<table id="missing"></table>
<script>
"use strict";
const $ = id => document.getElementById(id), history = [];
let before = null, at = 0;
const ms = part => part.count ? (part.ns / part.count / 1e6).toFixed(2) : "-";
const since = (now, old) => old && now.count >= old.count ? {count: now.count - old.count, ns: now.ns - old.ns} : now;
const gauge = (text, name) => {
  const found = text.match(new RegExp("^fastlayers_" + name + " (\\\\S+)", "m"));
  return found ? Number(found[1]) : 0;
};
const add = (parent, tag, text) => {
  const made = document.createElement(tag);
  made.textContent = text; parent.append(made);
  return made;
};
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
    let rate = 0, failed = 0;
    for (const model of stats.model_stats) {
      const key = model.name + "/" + model.version, old = before && before[key], s = model.inference_stats;
      const good = since(s.success, old && old.inference_stats.success);
      const each = old ? good.count / seconds : 0, row = add(rows, "tr", "");
      const recent = part => ms(old && good.count ? since(s[part], old.inference_stats[part]) : s[part]);
      rate += each; failed += s.fail.count;
      for (const value of [model.name, model.version, s.success.count, each.toFixed(1), s.fail.count, recent("success"),
        recent("queue"), recent("compute_infer"),
        model.execution_count ? (model.inference_count / model.execution_count).toFixed(2) : "-"])
        add(row, "td", value);
    }
    if (before) { history.push(rate); if (history.length > 120) history.shift(); }
    const most = Math.max(1, ...history);
    $("most").textContent = most.toFixed(0);
    $("line").setAttribute("points", history.map((r, i) => `${i + 120 - history.length},${98 - 96 * r / most}`).join(" "));
    $("cards").replaceChildren();
    for (const [value, what] of [[rate.toFixed(1), "requests per second"], [gauge(text, "requests_in_flight"), "in flight"],
      [gauge(text, "connections"), "connections"], [gauge(text, "sequences"), "sequences"], [failed, "failed"]]) {
      const card = add($("cards"), "div", "");
      card.className = "card"; add(card, "b", value); add(card, "small", what);
    }
    $("missing").replaceChildren();
    for (const model of index.filter(m => m.state !== "READY")) {
      const row = add($("missing"), "tr", "");
      for (const value of [model.name, "version " + model.version, "not loaded: " + model.reason]) add(row, "td", value);
    }
    before = Object.fromEntries(stats.model_stats.map(m => [m.name + "/" + m.version, m])); at = now;
  } catch (error) { $("state").textContent = "no answer"; $("state").className = "bad"; }
  setTimeout(turn, 1000);
}
turn();
</script></body></html>
"""
