// Draws the lanes: what was allocated, what ran there, its phases, and what is missing.

// True if a bar belongs to a row of the phase table.
function belongs(bar, row) {
  if (row.kind === 'job phase') return bar.run.node < 0 && bar.path === row.path && fits(bar, row);
  if (row.kind !== 'task phase' || bar.run.node < 0) return false;
  return bar.path === row.path && (!row.step || row.step === bar.run.step) && fits(bar, row);
}

function fits(bar, row) {
  if (row.number && bar.number) return row.number === bar.number;
  return bar.begin <= row.end_us && bar.end >= row.begin_us;
}

class LanePainter extends LaneCanvas {
  draw() {
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    this.width = plot_width();
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(layout.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${layout.height}px`;
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.colour('card');
    context.fillRect(0, 0, this.width, layout.height);
    context.textBaseline = 'middle';
    this.clipped(layout.head, layout.height, () => this.nodes());
    if (layout.job) this.job();
    this.axis();
    this.events();
  }

  nodes() {
    const visible = view.start.lanes.filter(lane => {
      const {top, px} = lane_box(lane);
      return top + px > layout.head && top < layout.height;
    });
    this.in_plot(() => {
      for (const lane of visible) this.lane(lane);
      this.grid();
    });
    this.labels(visible);
  }

  lane(lane) {
    const box = lane_box(lane);
    this.held(lane, box);
    if (view.colour === 'phases') {
      this.runs(lane, box);
      this.bars(lane, box);
    } else {
      this.heat(lane, box);
    }
    this.gaps(lane, box);
    if (box.px >= 10) {
      this.notices(lane, box);
      this.context.fillStyle = theme.colour('line');
      this.context.fillRect(GUTTER, box.top + box.px - 1, this.width, 1);
    }
  }

  // What is allocated lies behind everything; stripes where no process of the job was seen.
  held(lane, box) {
    const context = this.context;
    for (const span of lane.spans) {
      const left = this.x(span.begin), right = this.x(span.end);
      context.fillStyle = theme.colour('held');
      context.fillRect(left, box.top, right - left, box.px);
    }
    const silent = lane.node.state === 'silent';
    for (const [begin, end] of lane.idle ??= idle_times(lane)) {
      const left = Math.max(GUTTER, this.x(begin)), right = Math.min(this.width, this.x(end));
      if (right - left < 0.5) continue;
      context.fillStyle =
          pattern(context, theme.colour('held'), theme.colour('idle'), silent ? 'dots' : 'stripes');
      context.fillRect(left, box.top, right - left, box.px);
      const words = silent ? 'no telemetry' : 'idle';
      if (box.px >= 14 && right - left > 76)
        this.note(words, (left + right) / 2, box.top + box.px / 2);
    }
  }

  runs(lane, box) {
    const context = this.context;
    for (const run of lane.runs) {
      if (run.end < view.from || run.begin > view.to || lane.index < 0) continue;
      const {top, px} = row_box(box, run.first_row);
      const left = this.x(run.begin), wide = Math.max(1, this.x(run.end) - left);
      const picked = view.picked?.kind === 'step' && view.picked.step === run.step;
      context.globalAlpha = view.picked && !picked ? 0.45 : 1;
      context.fillStyle = theme.colour('step');
      context.fillRect(left, top, wide, px);
      if (picked) this.outline(left, top, wide, px);
      context.globalAlpha = 1;
      if (px >= 12 && box.row_px >= SPLIT_PX) {
        this.bar_text(
            /^\d+$/.test(run.step) ? `step ${run.step}` : run.step, left, wide, top, px,
            theme.colour('text'));
      }
      this.edges(run, lane, top, px);
      if (run.state === 'lost') this.broken(this.x(run.end), top, px);
    }
  }

  // Where the node's clock is not known well enough for this zoom, edges are not sharp.
  edges(item, lane, top, px) {
    const band = (lane.clock?.band ?? 0) / (view.to - view.from) * (this.width - GUTTER - RIGHT);
    if (band <= 1) return;
    for (const time of [item.begin, item.end]) {
      const at = this.x(time);
      const fade = this.context.createLinearGradient(at - band, 0, at + band, 0);
      fade.addColorStop(0, `${theme.colour('fuzzy')}00`);
      fade.addColorStop(0.5, theme.colour('fuzzy'));
      fade.addColorStop(1, `${theme.colour('fuzzy')}00`);
      this.context.fillStyle = fade;
      this.context.fillRect(at - band, top, 2 * band, px);
    }
  }

  bars(lane, box) {
    const {start, picked} = view;
    const last = [];  // right edge of what was drawn in a row: nothing is drawn twice in a pixel
    for (const bar of lane.bars) {
      if (bar.end < view.from || bar.begin > view.to) continue;
      const row = bar.run.first_row + bar.row;
      const left = this.x(bar.begin), right = Math.max(left + 1, this.x(bar.end));
      const fits_row = picked && belongs(bar, picked);
      if (right <= (last[row] ?? -1) && !fits_row) continue;
      last[row] = Math.max(last[row] ?? -1, Math.ceil(right));
      this.bar(
          bar, row_box(box, row), left, right - left, start.path_index.get(bar.path) ?? 0,
          fits_row);
    }
  }

  bar(bar, {top, px}, left, wide, index, picked) {
    const context = this.context;
    context.globalAlpha = view.picked && !picked && view.picked.path ? 0.28 : 1;
    context.fillStyle = phase_fill(context, index);
    context.fillRect(left, top, wide, px);
    if (wide > 3 && px >= 5) {
      context.fillStyle = '#0000003a';
      context.fillRect(left + wide - 1, top, 1, px);
    }
    if (px >= 12) {
      const name = bar.path.slice(bar.path.lastIndexOf('/') + 1);
      const text = bar.count > 1 && !bar.number ? `${name} ×${bar.count}` : name;
      this.bar_text(
          text, left, wide, top, px, text_on(phase_colour(index)),
          index < PHASE_COLOURS.length ? '' : phase_colour(index));
    }
    context.globalAlpha = 1;
    if (picked || bar === view.bar) this.outline(left, top, wide, px);
    this.edges(bar, bar.lane, top, px);
  }

  // How much of what was allocated is used, by the largest value in each pixel.
  heat(lane, box) {
    const used = view.start.series(lane.index, view.colour);
    const held = view.start.allocated(lane.index, view.colour);
    const width = this.width - GUTTER - RIGHT;
    let i = Math.max(0, index_at(used, view.from));
    for (let x = 0; x < width; x++) {
      const from = time_of(GUTTER + x, this.width), to = time_of(GUTTER + x + 1, this.width);
      while (i + 1 < used.t.length && used.t[i + 1] <= from) i++;
      let most = null;
      for (let k = i; k < used.t.length && used.t[k] < to; k++) {
        if (used.t[k] <= from && k !== i) continue;
        if (used.v[k] !== null && (most === null || used.v[k] > most)) most = used.v[k];
      }
      const all = most === null ? null : value_at(held, from);
      if (most === null || used.t[i] > to || !(all > 0)) continue;
      this.context.fillStyle = heat_colour(most / all);
      this.context.fillRect(GUTTER + x, box.top, 1.5, Math.max(1, box.px - (box.px >= 8 ? 1 : 0)));
    }
  }

  gaps(lane, box) {
    const context = this.context;
    for (const gap of lane.gaps) {
      const left = this.x(gap.begin), wide = this.x(gap.end) - left;
      if (wide < 0.5) continue;
      context.fillStyle = pattern(context, '', theme.colour('bad'), 'cross');
      context.globalAlpha = 0.55;
      context.fillRect(left, box.top, wide, box.px);
      context.globalAlpha = 1;
      if (wide > 90 && box.px >= 14) {
        this.note(
            gap.why, Math.min(Math.max(left, GUTTER) + 50, this.width - 60), box.top + box.px / 2);
      }
    }
  }

  notices(lane, box) {
    for (const notice of lane.notices)
      this.mark(this.x(clamp_time(notice.time)), box.top + box.px - 1, 4);
    for (const run of lane.runs) {
      if (run.markers_dropped + run.samples_dropped > 0)
        this.mark(this.x(run.end) - 5, box.top + box.px - 1, 4);
    }
  }

  grid() {
    const context = this.context;
    context.fillStyle = theme.colour('grid');
    for (const tick of view.ticks(this.width - GUTTER - RIGHT)) {
      context.fillRect(Math.round(this.x(tick.v)), layout.head, 1, layout.height);
    }
    context.strokeStyle = theme.colour('border');
    context.setLineDash([5, 3]);
    context.lineWidth = 1.5;
    for (const resize of view.start.resizes) {
      context.beginPath();
      context.moveTo(this.x(resize.time), AXIS_PX);
      context.lineTo(this.x(resize.time), layout.height);
      context.stroke();
    }
    context.setLineDash([]);
  }

  // As many names as there is room for.
  labels(lanes) {
    const context = this.context;
    let free = layout.head - 20;
    for (const lane of lanes) {
      const {top, px} = lane_box(lane), chosen = view.node === lane.index;
      const inside = top + Math.min(px / 2, tall_px({rows: 1}) / 2);
      const middle =
          px >= 14 ? inside : Math.min(Math.max(layout.head + 7, inside), layout.height - 9);
      if (view.focus === lane.index) {
        context.fillStyle = theme.colour('focus');
        context.fillRect(0, top, 3, Math.max(2, px));
      }
      if (middle - 7 < free && !chosen) continue;
      free = middle + 7;
      context.font = chosen ? `600 ${FONT}` : FONT;
      context.fillStyle = theme.colour(lane.node.state === 'used' ? 'text' : 'soft');
      context.textAlign = 'right';
      context.fillText(this.fitted(lane.name, GUTTER - 16), GUTTER - 8, middle + 0.5);
      this.more_lines(lane, middle + 16, top + px);
      context.textAlign = 'left';
    }
  }

  // Below the name, as far as the lane is high enough.
  more_lines(lane, y, bottom) {
    const lines = lane.clock ? clock_texts(lane.clock) :
        lane.node.cpus       ? [count_of(lane.node.cpus, 'CPU')] :
                               [];
    this.context.font = SMALL;
    this.context.fillStyle = theme.colour('soft');
    lines.forEach((line, i) => {
      if (y + i * 14 + 7 <= bottom) this.context.fillText(line, GUTTER - 8, y + i * 14);
    });
  }

  job() {
    const context = this.context, lane = view.start.job_lane, box = lane_box(lane);
    this.in_plot(() => this.bars(lane, box));
    context.font = FONT;
    context.fillStyle = theme.colour('text');
    context.textAlign = 'right';
    context.fillText('job script', GUTTER - 8, box.top + PAD_PX + ROW_PX / 2);
    context.textAlign = 'left';
    context.fillStyle = theme.colour('line');
    context.fillRect(0, layout.head - 2, this.width, 2);
  }

  axis() {
    const context = this.context;
    context.font = SMALL;
    context.fillStyle = theme.colour('soft');
    context.textAlign = 'center';
    for (const tick of view.ticks(this.width - GUTTER - RIGHT)) {
      const x = this.x(tick.v), half = context.measureText(tick.label).width / 2;
      const at = Math.min(Math.max(x, GUTTER + half - 14), this.width - half - 2);
      context.fillText(tick.label, at, AXIS_PX / 2);
      context.fillRect(Math.round(x), AXIS_PX - 4, 1, 4);
    }
    context.textAlign = 'left';
    context.fillRect(GUTTER, AXIS_PX - 1, this.width - GUTTER - RIGHT, 1);
  }

  // Resizes and notices, in a strip of their own.
  events() {
    if (!layout.events) return;
    const context = this.context, y = AXIS_PX + layout.events / 2;
    context.font = SMALL;
    context.fillStyle = theme.colour('soft');
    context.textAlign = 'right';
    context.fillText('resizes, notices', GUTTER - 8, y);
    context.textAlign = 'left';
    this.in_plot(() => {
      let free = GUTTER;
      for (const resize of view.start.resizes) {
        const x = this.x(resize.time), text = `${resize.from} → ${resize.to} nodes`;
        context.fillStyle = theme.colour('border');
        context.fillRect(x - 1, y - 7, 3, 14);
        const room = context.measureText(text).width;
        const right = x + 6 + room < this.width - RIGHT;
        if (x < free) continue;
        context.fillStyle = theme.colour('text');
        context.fillText(text, right ? x + 6 : x - 6 - room, y + 0.5);
        free = x + room + 12;
      }
      for (const notice of view.start.notices) this.mark(this.x(clamp_time(notice.time)), y + 7, 6);
    });
  }
}

// Times in which a node was held and no process of the job was on it.
function idle_times(lane) {
  const times = [];
  for (const span of lane.spans) {
    let free = span.begin;
    for (const run of [...lane.runs].sort((a, b) => a.begin - b.begin)) {
      if (run.begin > free) times.push([free, Math.min(run.begin, span.end)]);
      free = Math.max(free, run.end);
    }
    for (const gap of lane.gaps) {
      if (gap.why === 'recorder lost') free = Math.max(free, gap.end);
    }
    if (free < span.end) times.push([free, span.end]);
  }
  return times.filter(([begin, end]) => end > begin);
}

// What the node's clock was off by, and how sure that is.
function clock_texts(clock) {
  const sign = clock.offset > 0 ? '+' : '';
  const offset = Math.abs(clock.offset) >= 1e6 ? `${(clock.offset / 1e6).toFixed(3)} s` :
                                                 `${(clock.offset / 1e3).toFixed(1)} ms`;
  return [`clock ${sign}${offset}`, `± ${number_text(clock.band / 1e3)} ms`];
}

function clock_offset_text(clock) {
  return clock_texts(clock).join(', ');
}
