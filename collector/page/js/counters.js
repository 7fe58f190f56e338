// Counters of phases over time. They were read at the phases' edges, so that what is shown is the
// mean over the innermost phase that counted at a time.

const MISSES = ['PAPI_L3_TCM', 'perf::CACHE-MISSES'];
const FLOPS = ['PAPI_FP_OPS', 'PAPI_DP_OPS'];

function event_of(names) {
  return names.find(name => view.start.events.includes(name));
}

// What can be shown of what was counted: [id, title, event above, event below (null: time), factor]
function counters_known() {
  const has = name => view.start.events.includes(name);
  const known = [], misses = event_of(MISSES), flops = event_of(FLOPS);
  if (has('PAPI_TOT_INS') && has('PAPI_TOT_CYC')) {
    known.push(['ipc', 'Instructions per cycle', 'PAPI_TOT_INS', 'PAPI_TOT_CYC', 1]);
  }
  if (has('PAPI_TOT_INS'))
    known.push(['ins', 'Instructions per second', 'PAPI_TOT_INS', null, 1e6]);
  if (misses && has('PAPI_TOT_INS')) {
    known.push(['misses', 'Cache misses per 1000 instructions', misses, 'PAPI_TOT_INS', 1e3]);
  }
  if (flops) known.push(['flops', 'Floating-point operations per second', flops, null, 1e6]);
  for (const event of view.start.events)
    known.push([`event ${event}`, `${event} per second`, event, null, 1e6]);
  return known;
}

// [begin, end, bar] of the innermost counted bar at each time.
function innermost(bars) {
  const edges = bars.flatMap(bar => [[bar.begin, 1, bar], [bar.end, 0, bar]]);
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const open = new Set(), parts = [];
  edges.forEach(([time, begins, bar], i) => {
    if (begins)
      open.add(bar);
    else
      open.delete(bar);
    const next = edges[i + 1]?.[0];
    if (next === undefined || next <= time || open.size === 0) return;
    const deepest = [...open].reduce((a, b) => b.row > a.row ? b : a);
    parts.push([time, next, deepest]);
  });
  return parts;
}

function counter_steps(above, below, factor) {
  const upper = view.start.events.indexOf(above);
  const lower = below === null ? -1 : view.start.events.indexOf(below);
  const tops = [], bottoms = [];
  for (const run of view.start.runs) {
    if (run.node < 0 || (view.node >= 0 && run.node !== view.node)) continue;
    const bars = (view.start.counted ??= by_run(view.start)).get(run) ?? [];
    for (const [begin, end, bar] of innermost(bars)) {
      const top = bar.counts[upper], bottom = below === null ? bar.length : bar.counts[lower];
      if (top === null || bottom === null || bar.length <= 0) continue;
      tops.push([begin, end, top / bar.length]);
      bottoms.push([begin, end, bottom / bar.length]);
    }
  }
  const sum = sum_spans(tops);
  if (below === null)
    return {t: sum.t, v: sum.v.map(value => value === null ? null : value * factor)};
  const under = sum_spans(bottoms);
  return {
    t: sum.t,
    v: sum.v.map(
        (value, i) => (value === null || !(under.v[i] > 0) ? null : value / under.v[i] * factor))
  };
}

function by_run(start) {
  const runs = new Map();
  for (const bar of start.bars) {
    if (!bar.counts || bar.length <= 0) continue;
    if (!runs.has(bar.run)) runs.set(bar.run, []);
    runs.get(bar.run).push(bar);
  }
  return runs;
}

function counter_spec(id) {
  const found = counters_known().find(([known]) => known === id);
  if (!found) return null;
  const [, title, above, below, factor] = found;
  return {
    id,
    title,
    counter: true,
    colour: 'counter',
    text: below === null ? count_text : number_text,
    note: 'mean of the innermost phase that counted',
    nothing: 'nothing was counted here',
    load: () => counter_steps(above, below, factor),
  };
}

// "1.2 IPC" and the like for a bar's tooltip.
function count_lines(bar) {
  if (!bar.counts) return [];
  const count = name => bar.counts[view.start.events.indexOf(name)] ?? null;
  const lines = [];
  const instructions = count('PAPI_TOT_INS'), cycles = count('PAPI_TOT_CYC');
  if (instructions !== null) lines.push(`instructions: ${count_text(instructions)}`);
  if (instructions !== null && cycles > 0)
    lines.push(`instructions per cycle: ${number_text(instructions / cycles)}`);
  const misses = count(event_of(MISSES));
  if (misses !== null && instructions > 0)
    lines.push(`cache misses per 1000 instructions: ${number_text(misses / instructions * 1e3)}`);
  return lines;
}
