// From the JSON (docs/page.md) to what is drawn.

// Control characters and those that reorder or hide text, as \xNN: what came out of a job is shown,
// and steers nothing.
const HARMFUL =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function harmless(text) {
  return text.replace(HARMFUL, c => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function parse_data(text) {
  return JSON.parse(text, (_, value) => typeof value === 'string' ? harmless(value) : value);
}

// {"t": differences, "v": values} as {t, v} with times; a value holds until the next one.
function read_steps(packed) {
  let time = 0;
  return {t: packed.t.map(difference => time += difference), v: packed.v};
}

// Index of the last point at or before `time`, -1: none.
function index_at(steps, time) {
  let low = 0, high = steps.t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps.t[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

function value_at(steps, time) {
  const i = index_at(steps, time);
  return i < 0 ? null : steps.v[i];
}

// The largest value that holds somewhere in the interval; null: none is known.
function most_in(steps, from, to) {
  let most = null;
  for (let i = Math.max(0, index_at(steps, from)); i < steps.t.length && steps.t[i] <= to; i++) {
    if (steps.v[i] !== null && (most === null || steps.v[i] > most)) most = steps.v[i];
  }
  return most;
}

// Rows [time, value] for a chart. Before a value becomes unknown it is told once more, so that
// areas reach as far as lines do.
function rows_of({t, v}) {
  const rows = [];
  t.forEach((time, i) => {
    if (i > 0 && v[i] === null && v[i - 1] !== null) rows.push([time, v[i - 1]]);
    rows.push([time, v[i]]);
  });
  return rows;
}

// Sum of [begin, end, value] over time; where one of them is not known the sum is not.
function sum_spans(spans) {
  const changes = [];
  for (const [begin, end, value] of spans) {
    if (end <= begin) continue;
    changes.push([begin, value ?? 0, value === null ? 1 : 0, 1]);
    changes.push([end, -(value ?? 0), value === null ? -1 : 0, -1]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  const steps = {t: [], v: []};
  let sum = 0, unknown = 0, held = 0;
  changes.forEach(([time, value, unknown_more, held_more], i) => {
    sum += value;
    unknown += unknown_more;
    held += held_more;
    if (changes[i + 1]?.[0] === time) return;
    const now = held === 0 || unknown > 0 ? null : sum;
    steps.t.push(time);
    steps.v.push(now);
  });
  return steps;
}

const RUN_FIELDS = [
  'node', 'step', 'begin', 'end', 'first_row', 'rows', 'state', 'tasks', 'markers',
  'markers_dropped', 'samples_dropped'
];
const BAR_FIELDS = [
  'run', 'row', 'path', 'shell', 'number', 'begin', 'length', 'count', 'tasks', 'flags', 'cpu_us',
  'memory_bytes', 'counts'
];

function named(fields, values) {
  return Object.fromEntries(fields.map((field, i) => [field, values[i]]));
}

class Start {
  constructor(json) {
    this.json = json;
    this.job = json.job;
    this.begin_us = json.begin_us;
    this.length = Math.max(1, json.length_us);
    this.nodes = json.nodes;
    this.events = json.lanes.events;
    this.lanes = json.nodes.map((node, index) => ({
                                  index,
                                  name: node.node,
                                  node,
                                  runs: [],
                                  bars: [],
                                  spans: [],
                                  gaps: [],
                                  notices: [],
                                  rows: 1
                                }));
    this.job_lane = {index: -1, name: 'job script', runs: [], bars: [], gaps: [], rows: 0};
    this.read_lanes();
    this.read_notes();
    this.read_table();
    this.cache = new Map();
  }

  text(index) {
    return this.json.texts[index];
  }

  lane(index) {
    return index < 0 ? this.job_lane : this.lanes[index];
  }

  read_lanes() {
    this.runs = this.json.lanes.runs.map(values => {
      const run = named(RUN_FIELDS, values);
      run.step = this.text(run.step);
      const lane = this.lane(run.node);
      lane.runs.push(run);
      lane.rows = Math.max(lane.rows, run.first_row + run.rows);
      return run;
    });
    this.bars = this.json.lanes.bars.map(values => {
      const bar = named(BAR_FIELDS, values);
      bar.end = bar.begin + bar.length;
      bar.path = this.text(bar.path);
      bar.run = this.runs[bar.run];
      bar.lane = this.lane(bar.run.node);
      bar.lane.bars.push(bar);
      return bar;
    });
    for (const [node, begin, end, cpus, memory] of this.json.spans) {
      this.lanes[node].spans.push({begin, end, cpus, memory});
    }
    for (const [node, step, begin, end, why] of this.json.lanes.gaps) {
      this.lanes[node].gaps.push({step: this.text(step), begin, end, why});
    }
  }

  read_notes() {
    this.notices = this.json.notices.map(
        ([time, node, step, code, text]) =>
            ({time, node, step: this.text(step), code: this.text(code), text: this.text(text)}));
    for (const notice of this.notices) this.lanes[notice.node].notices.push(notice);
    for (const [node, offset, band] of this.json.clocks) this.lanes[node].clock = {offset, band};
    // Where one allocation ends and another begins.
    this.resizes = this.json.allocations.slice(1).map((after, i) => ({
                                                        time: after.begin_us,
                                                        from: this.json.allocations[i].node_count,
                                                        to: after.node_count
                                                      }));
  }

  read_table() {
    const read = rows => rows?.map(values => {
      const row = named(this.json.table.fields, values);
      for (const field of ['name', 'path', 'step']) row[field] = this.text(row[field]);
      return row;
    });
    this.summary = read(this.json.table.summary);
    this.instances = read(this.json.table.instances) ?? null;
    this.paths = [...new Set([...this.summary, ...this.bars].map(row => row.path))].filter(p => p);
    this.path_index = new Map(this.paths.map((path, i) => [path, i]));
  }

  // Series `which` ('cpus', 'memory', 'wasted') of a node, or of all together (-1).
  series(node, which) {
    const key = `${which} ${node}`;
    if (!this.cache.has(key)) {
      const set = node < 0 ? this.json.series.sum : this.json.series.nodes[node];
      this.cache.set(key, read_steps(set[which]));
    }
    return this.cache.get(key);
  }

  // What was allocated: 'cpus', 'memory', or 'nodes'.
  allocated(node, which) {
    const key = `allocated ${which} ${node}`;
    if (!this.cache.has(key)) {
      const lanes = node < 0 ? this.lanes : [this.lanes[node]];
      const spans = lanes.flatMap(
          lane =>
              lane.spans.map(span => [span.begin, span.end, which === 'nodes' ? 1 : span[which]]));
      this.cache.set(key, sum_spans(spans));
    }
    return this.cache.get(key);
  }
}
