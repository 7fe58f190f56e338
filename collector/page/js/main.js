// Puts it together. show(data) may be called again with newer data: window, node and selection
// stay.

const painter = new LanePainter(by_id('lanes-canvas'));
let starts = [];

function fill_selects() {
  const {start} = view;
  by_id('node-select')
      .replaceChildren(
          option(-1, start.nodes.length > 1 ? `all ${start.nodes.length} nodes` : 'the job'),
          ...start.nodes.map((node, i) => option(i, node.node)));
  by_id('node-select').value = view.node;
  const counters = counters_known();
  by_id('counter-pick').hidden = counters.length === 0;
  by_id('counter-select')
      .replaceChildren(option('', 'none'), ...counters.map(([id, title]) => option(id, title)));
  by_id('counter-select').value = view.counter;
  by_id('start-pick').hidden = starts.length < 2;
  by_id('start-select')
      .replaceChildren(...starts.map((one, i) => option(i, start_label(one, starts))).reverse());
  by_id('start-select').value = starts.indexOf(start);
}

function draw_plots() {
  if (by_id('plots').hidden) return;
  lay_out();
  by_id('legend').replaceChildren(...legend_of(view.start));
  painter.draw();
  if (!by_id('charts').hidden) charts.draw();
  const digits = Math.max(1, (view.to - view.from) / 1000);
  by_id('window-text').textContent = view.whole() ?
      duration_text(view.start.length) :
      `${view.time_text(view.from, digits)} – ${view.time_text(view.to, digits)} (${
          duration_text(view.to - view.from)})`;
}

// Only what changed is drawn again.
function on_change({window: moved, state, data}) {
  if (data || state) {
    by_id('node-select').value = view.node;
    charts.load();
    table.mark();
  }
  if (data || state || moved) draw_plots();
}

function same_name(list, name, key) {
  return list.findIndex(item => item[key] === name);
}

// Shows a start; `before` is what was shown until now, if it is the same one with newer data.
function show_start(start, before) {
  const whole = !before || view.whole();
  const node =
      before && view.node >= 0 ? same_name(start.nodes, before.nodes[view.node].node, 'node') : -1;
  const focus = before && view.focus >= 0 ?
      same_name(start.lanes, before.lanes[view.focus].name, 'name') :
      -1;
  const row = view.picked;
  view.start = start;
  view.node = start.nodes.length === 1 && !before ? -1 : node;
  view.focus = focus;
  view.bar = null;
  view.picked = before && row ?
      start.summary.find(
          other => other.path === row.path && other.step === row.step && other.kind === row.kind) ??
          null :
      null;
  const later = before ? before.begin_us - start.begin_us : 0;  // records may move the beginning
  Object.assign(
      view, whole ? {from: 0, to: start.length} : {from: view.from + later, to: view.to + later});
  view.bound();
  if (!counters_known().some(([id]) => id === view.counter)) view.counter = '';
  draw_head();
  fill_selects();
  table.draw();
  view.changed('data');
}

function same_start(a, b) {
  return a.job.cluster === b.job.cluster && a.job.job_id === b.job.job_id &&
      a.job.restart_count === b.job.restart_count;
}

// `data`: what page_data makes, parsed. Unless one was chosen, the latest start is shown.
function show(data) {
  const before = view.start;
  view.flags = data.flags;
  starts = data.starts.map(json => new Start(json));
  if (starts.length === 0) {
    by_id('empty').textContent = 'Nothing is known of this job yet.';
    by_id('empty').hidden = false;
    return;
  }
  const again = before ? starts.find(start => same_start(start, before)) : null;
  show_start(again ?? starts[starts.length - 1], again ? before : null);
}

function toggle_theme() {
  theme.toggle();
  draw_plots();
  table.draw();
}

function on_lane_click(event, x) {
  const box = by_id('lanes').getBoundingClientRect();
  const hit = hit_at(x, event.clientY - box.top);
  if (!hit.lane) return;
  if (x < GUTTER && hit.lane.index >= 0) {
    view.set({node: view.node === hit.lane.index ? -1 : hit.lane.index, focus: hit.lane.index});
    return;
  }
  const bar = hit.bar && hit.bar !== view.bar ? hit.bar : null;
  view.set({focus: hit.lane.index, bar, picked: bar ? table.row_of(bar) : null});
}

function listen() {
  const on_select = (id, change) =>
      by_id(id).addEventListener('change', event => change(event.target.value));
  on_select('node-select', value => view.set({node: Number(value)}));
  on_select('counter-select', counter => view.set({counter}));
  on_select('colour-select', colour => view.set({colour}));
  on_select('density-select', density => view.set({density}));
  on_select('clock-select', clock => view.set({clock}));
  on_select('scale-select', scale => view.set({scale}));
  on_select('start-select', value => show_start(starts[Number(value)], null));
  by_id('instances-box').addEventListener('change', event => {
    table.each = event.target.checked;
    table.draw();
  });
  by_id('zoom-in').addEventListener('click', () => view.zoom(0.6));
  by_id('zoom-out').addEventListener('click', () => view.zoom(1 / 0.6));
  by_id('zoom-all').addEventListener('click', () => view.reset());
  by_id('theme-button').addEventListener('click', toggle_theme);
  by_id('missing-more').addEventListener('click', () => {
    missing.all = !missing.all;
    missing.draw();
  });
  by_id('lanes-scroll').addEventListener('scroll', () => painter.draw());
  new Gestures(by_id('lanes'), {click: on_lane_click});
  follow_pointer(by_id('lanes'), lane_lines);
}

// On paper it is light, and as wide as the paper.
function print_as(printing) {
  theme.printing = printing;
  document.documentElement.toggleAttribute('data-printing', printing);
  theme.apply();
  draw_plots();
  table.draw();
}

function begin() {
  theme.load();
  make_help();
  listen();
  view.listeners.push(on_change);
  charts.make();
  show(parse_data(by_id('data').textContent));
  addEventListener('resize', () => view.changed('window'));
  addEventListener('beforeprint', () => print_as(true));
  addEventListener('afterprint', () => print_as(false));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    theme.apply();
    draw_plots();
    table.draw();
  });
}

begin();
// For a server that has newer data, and for tests.
globalThis.sphase = {
  show: data => show(parse_data(JSON.stringify(data))),
  view,
  value_at
};
