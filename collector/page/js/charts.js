// Charts below the lanes, on the same axis of time: dygraphs draws, the gestures are ours.

const CHART_PX = 132;

// What each chart shows. `held`: the line of what was allocated.
const CHARTS = [
  {id: 'cpus', title: 'CPUs busy', held: 'cpus', colour: 'cpu', text: number_text},
  {id: 'memory', title: 'Memory', held: 'memory', colour: 'mem', text: bytes_text, binary: true},
  {
    id: 'wasted',
    title: 'Nodes wasted',
    held: 'nodes',
    colour: 'waste',
    text: number_text,
    note: 'its area is the wasted node-seconds'
  },
];

// The legend of dygraphs writes styles into HTML, which the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins?.Legend);

class Chart {
  constructor(spec, parent) {
    this.spec = spec;
    this.title = element('h3', {text: spec.title});
    this.note = element('span', {cls: 'hint'});
    this.box = element('div', {cls: 'dygraph'});
    this.empty = element('p', {cls: 'nothing'});
    this.plot = element(
        'div', {cls: 'plot', attributes: {role: 'img'}},
        [this.box, this.empty, element('div', {cls: 'cross'}), element('div', {cls: 'band'})]);
    this.head = element('div', {cls: 'chart-head'}, [this.title, this.note]);
    this.section = element('div', {cls: 'chart'}, [this.head, this.plot]);
    parent.append(this.section);
    new Gestures(this.plot);
    follow_pointer(this.plot, time => this.lines(time));
  }

  // The lines for what is chosen.
  load() {
    this.used = this.spec.load ? this.spec.load() : view.start.series(view.node, this.spec.id);
    this.held = this.spec.held ? view.start.allocated(view.node, this.spec.held) : {t: [], v: []};
    this.rows = rows_of(this.used);
    const known = this.used.v.some(value => value !== null);
    this.empty.textContent =
        known ? '' : this.spec.nothing ?? `${this.spec.title}: not recorded here`;
    this.empty.hidden = known;
    const of = view.node < 0 ? (view.start.nodes.length > 1 ? 'sum over all nodes' : '') :
                               view.start.nodes[view.node].node;
    this.note.textContent = [
      of, this.spec.held && known ? 'dashed: allocated' : '', this.spec.note
    ].filter(Boolean).join(' · ');
    this.plot.setAttribute('aria-label', this.summary());
    this.stale = true;
  }

  // Times are written below the last one alone.
  is_last() {
    return charts.list[charts.list.length - 1] === this;
  }

  px() {
    return this.is_last() ? CHART_PX + 20 : CHART_PX;
  }

  summary() {
    const most = most_in(this.used, 0, view.start.length);
    return most === null ? `${this.spec.title}: nothing known` :
                           `${this.spec.title}: at most ${this.spec.text(most)}`;
  }

  range() {
    const used = most_in(this.used, view.from, view.to) ?? 0;
    const held = most_in(this.held, view.from, view.to) ?? 0;
    const most = view.scale === 'used' && used > 0 ? used : Math.max(used, held);
    return [0, most > 0 ? most * 1.08 : 1];
  }

  ticks(most) {
    return value_ticks(most, 4, this.spec.binary).map(v => ({v, label: this.spec.text(v)}));
  }

  options() {
    const [, most] = this.range();
    const width = plot_width();
    return {
      file: this.rows.length ? this.rows : [[0, null]],
      dateWindow: [view.from, view.to],
      valueRange: [0, most],
      rightGap: RIGHT,
      colors: [theme.colour(this.spec.colour)],
      gridLineColor: theme.colour('grid'),
      axisLineColor: theme.colour('axis'),
      axes: {
        x: {
          ticker: () => view.ticks(width - GUTTER - RIGHT),
          drawGrid: true,
          drawAxis: this.is_last()
        },
        y: {ticker: () => this.ticks(most), axisLabelWidth: GUTTER - 6},
      },
    };
  }

  draw() {
    this.plot.style.width = `${plot_width()}px`;
    this.plot.style.height = this.box.style.height = `${this.px()}px`;
    const size = `${plot_width()} ${this.px()}`;
    if (!this.graph)
      this.make();
    else {
      if (size !== this.size) this.graph.resize(plot_width(), this.px());
      this.graph.updateOptions(this.options());
    }
    this.size = size;
    this.stale = false;
  }

  make() {
    const {file, ...options} = this.options();
    this.graph = new Dygraph(this.box, file, {
      ...options,
      width: plot_width(),
      height: this.px(),
      labels: ['time', 'used'],
      stepPlot: true,
      fillGraph: true,
      fillAlpha: 0.32,
      strokeWidth: 1.2,
      connectSeparatedPoints: false,
      highlightCircleSize: 0,
      axisTickSize: 3,
      axisLabelFontSize: 11,
      interactionModel: {},
      animatedZooms: false,
      underlayCallback: (context, area, graph) => this.under(context, area, graph),
    });
  }

  // Borders between allocations, and what is picked in the table.
  under(context, area, graph) {
    context.save();
    if (view.picked && view.picked.kind !== 'job') {
      const left = Math.max(area.x, graph.toDomXCoord(view.picked.begin_us));
      const right = Math.min(area.x + area.w, graph.toDomXCoord(view.picked.end_us));
      context.fillStyle = theme.colour('picked');
      if (right > left) context.fillRect(left, area.y, right - left, area.h);
    }
    this.draw_held(context, area, graph);
    context.strokeStyle = theme.colour('border');
    context.setLineDash([5, 3]);
    for (const resize of view.start.resizes) {
      const x = graph.toDomXCoord(resize.time);
      if (x < area.x || x > area.x + area.w) continue;
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
    }
    context.restore();
  }

  // What was allocated: dashed.
  draw_held(context, area, graph) {
    const {t, v} = this.held;
    context.beginPath();
    context.rect(area.x, area.y, area.w, area.h);
    context.clip();
    context.beginPath();
    t.forEach((time, i) => {
      if (v[i] === null) return;
      const y = graph.toDomYCoord(v[i]), end = t[i + 1] ?? view.start.length;
      if (i === 0 || v[i - 1] === null)
        context.moveTo(graph.toDomXCoord(time), y);
      else
        context.lineTo(graph.toDomXCoord(time), y);
      context.lineTo(graph.toDomXCoord(end), y);
    });
    context.setLineDash([6, 4]);
    context.lineWidth = 1.2;
    context.strokeStyle = theme.colour('text');
    context.stroke();
  }

  // Lines of the tooltip at a time.
  lines(time) {
    const used = value_at(this.used, time), held = value_at(this.held, time);
    const lines = [`${this.spec.title}: ${this.spec.text(used)}`];
    if (this.spec.held) {
      const share = used !== null && held > 0 ? ` (${percent_text(used / held)})` : '';
      lines.push(`allocated: ${this.spec.text(held)}${share}`);
    }
    return lines;
  }

  remove() {
    this.graph?.destroy();
    this.section.remove();
  }
}

const charts = {
  list: [],

  make() {
    const parent = by_id('charts');
    this.list = CHARTS.map(spec => new Chart(spec, parent));
  },

  // Counters get a chart of their own once somebody asks for one.
  load() {
    const counter = this.list.find(chart => chart.spec.counter);
    if (counter && counter.spec.id !== view.counter) {
      counter.remove();
      this.list = this.list.filter(chart => chart !== counter);
    }
    const spec = view.counter ? counter_spec(view.counter) : null;
    if (spec && !this.list.some(chart => chart.spec.id === spec.id)) {
      this.list.push(new Chart(spec, by_id('charts')));
    }
    for (const chart of this.list) chart.load();
  },

  draw() {
    for (const chart of this.list) chart.draw();
  },
};
