// What is said at the pointer: numbers with their units, as text.

const tip = by_id('tip');

function hide_tip() {
  tip.hidden = true;
  for (const cross of document.querySelectorAll('.cross')) cross.style.display = 'none';
}

// The same time is marked in all plots.
function show_cross(time) {
  const x = x_of(time, plot_width());
  for (const cross of document.querySelectorAll('.cross')) {
    cross.style.display = x >= GUTTER && x <= plot_width() - RIGHT ? 'block' : 'none';
    cross.style.left = `${x}px`;
  }
}

function show_tip(event, [head, ...lines]) {
  tip.replaceChildren(
      element('strong', {text: head}), ...lines.map(text => element('div', {text})));
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left =
      event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  const top = Math.min(event.clientY + 14, innerHeight - height - 6);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

// Calls `lines_at(time, x, y)` for the place of the pointer in a plot; nothing: no tooltip.
function follow_pointer(plot, lines_at) {
  plot.addEventListener('pointermove', event => {
    if (event.buttons || !view.start) return;
    const box = plot.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    if (x > plot_width()) return hide_tip();
    const time = time_of(x, plot_width());
    show_cross(time);
    const lines = x < GUTTER && plot.id !== 'lanes' ? null : lines_at(time, x, y);
    if (!lines)
      tip.hidden = true;
    else
      show_tip(event, x < GUTTER ? lines : [view.precise_text(time), ...lines]);
  });
  plot.addEventListener('pointerleave', hide_tip);
}

function flag_text(flags) {
  return view.flags.filter(([bit]) => flags & bit).map(([, word]) => word).join(', ');
}

function bar_lines(bar) {
  const instance = bar.number > 1 ? ` #${bar.number}` : bar.count > 1 ? ` ×${bar.count}` : '';
  const step = bar.run.step && bar.run.node >= 0 ? `, ${step_text(bar.run.step)}` : '';
  const lines = [
    `phase ${bar.path}${instance}${step}`,
    `took ${duration_text(bar.length)}, from ${view.precise_text(bar.begin)} to ${
        view.precise_text(bar.end)}`
  ];
  if (bar.tasks > 1) lines.push(count_of(bar.tasks, 'task'));
  if (bar.cpu_us !== null) {
    const busy = bar.length > 0 ? `, ${number_text(bar.cpu_us / bar.length)} CPUs busy` : '';
    lines.push(`CPU time ${duration_text(bar.cpu_us)}${busy}`);
  }
  if (bar.memory_bytes !== null) lines.push(`peak memory ${bytes_text(bar.memory_bytes)}`);
  lines.push(...count_lines(bar));
  const flags = flag_text(bar.flags);
  if (flags) lines.push(flags);
  return lines;
}

function step_text(step) {
  return /^\d+$/.test(step) ? `step ${step}` : `${step} step`;
}

function run_lines(run) {
  const lines =
      [`${step_text(run.step)}: ${duration_text(run.end - run.begin)}` +
       (run.tasks === null ? '' : `, ${count_of(run.tasks, 'task')} here`) +
       (run.state === 'ended' ? '' : `, ${run.state}`)];
  if (run.markers_dropped)
    lines.push(`${count_of(run.markers_dropped, 'marker')} dropped or not understood`);
  if (run.samples_dropped) lines.push(`${count_of(run.samples_dropped, 'sample')} dropped`);
  return lines;
}

function used_lines(node, time) {
  const {start} = view;
  const one = (what, which, text) => {
    const used = value_at(start.series(node, which), time);
    if (used === null) return [];
    const held = value_at(start.allocated(node, which), time);
    return [`${what} ${text(used)} of ${text(held)}`];
  };
  return [...one('CPUs busy', 'cpus', number_text), ...one('memory', 'memory', bytes_text)];
}

const STATES = {
  used: '',
  idle: 'allocated, but no process of the job was seen there',
  silent: 'allocated, but it told nothing'
};

function node_lines(lane) {
  const {node} = lane;
  const lines = [lane.name, STATES[node.state]];
  if (node.time_s !== null) lines.push(`allocated for ${duration_text(node.time_s * 1e6)}`);
  if (node.cpus) lines.push(count_of(node.cpus, 'CPU'));
  if (node.cpu_time_us > 0 && node.time_s > 0) {
    lines.push(`${number_text(node.cpu_time_us / 1e6 / node.time_s)} CPUs busy on average`);
  }
  if (node.memory_peak_bytes) {
    lines.push(`peak memory ${bytes_text(node.memory_peak_bytes)} of ${
        bytes_text(node.memory_allocated_bytes)}`);
  }
  if (node.wasted_node_s !== null && node.wasted_node_s !== undefined) {
    lines.push(`wasted ${node_time_text(node.wasted_node_s)}`);
  }
  if (lane.clock) lines.push(clock_offset_text(lane.clock));
  return lines.filter(Boolean);
}

function notice_line(notice) {
  const node = view.start.nodes[notice.node].node;
  return `▲ ${node}${notice.step ? `, ${step_text(notice.step)}` : ''}: ${notice.text}`;
}

function lane_lines(time, x, y) {
  const hit = hit_at(x, y);
  if (!hit.lane) {
    const lines = (hit.notices ?? []).slice(0, 6).map(notice_line);
    if (hit.resize)
      lines.unshift(`resized from ${hit.resize.from} to ${count_of(hit.resize.to, 'node')}`);
    return lines.length ? lines : null;
  }
  const {lane} = hit;
  if (x < GUTTER)
    return lane.index < 0 ? ['job script', 'phases that the job script marked'] : node_lines(lane);
  const lines = [lane.name];
  if (hit.bar) lines.push(...bar_lines(hit.bar));
  if (lane.index < 0) return hit.bar ? lines : null;
  if (hit.run) lines.push(...run_lines(hit.run));
  const held = lane.spans.some(span => covers(span, time, 0));
  if (!hit.run && held && !hit.gap)
    lines.push(
        lane.node.state === 'silent' ? STATES.silent : 'idle: allocated, no process of the job');
  if (!held && !hit.run) lines.push('not allocated');
  lines.push(...used_lines(lane.index, time));
  if (hit.gap) lines.push(`${hit.gap.why} for ${duration_text(hit.gap.end - hit.gap.begin)}`);
  lines.push(...hit.notices.slice(0, 4).map(notice_line));
  if (lane.clock) lines.push(clock_offset_text(lane.clock));
  return lines;
}

// For those who use the keyboard or a screen reader.
function speak(text) {
  by_id('spoken').textContent = text;
}
