// The job in words and numbers, and what is not known about it.

function job_label(job) {
  if (job.array_job_id !== null && job.array_task_id !== null)
    return `${job.array_job_id}_${job.array_task_id}`;
  if (job.het_job_id !== null && job.het_offset !== null)
    return `${job.het_job_id}+${job.het_offset}`;
  return String(job.job_id);
}

// As wait(2) has it: killed by a signal, or ended with a code.
function state_text(start) {
  const {job} = start;
  const code = job.exit_code ?? 0;
  let text = job.state ?? (start.json.running ? 'RUNNING' : 'state not known');
  if (code & 0x7f)
    text += `, signal ${code & 0x7f}`;
  else if ((code >> 8) & 0xff)
    text += `, exit code ${(code >> 8) & 0xff}`;
  if (job.state_reason && job.state_reason !== 'None') text += ` (${job.state_reason})`;
  return text;
}

function start_label(start, starts) {
  const again = starts.filter(other => other.job.job_id === start.job.job_id).length > 1;
  const when = start.job.start_s !== null || start.runs.length ? `, ${date_text(start.begin_us)}` :
                                                                 ', not started';
  return `${job_label(start.job)}${again ? ` start ${start.job.restart_count + 1}` : ''}${when}`;
}

function facts_of(start) {
  const {job, json} = start;
  const facts = [];
  const add = (name, value) => value !== null && value !== '' && facts.push(`${name} ${value}`);
  add('user', job.user ?? (job.uid === null ? null : `uid ${job.uid}`));
  add('account', job.account);
  add('partition', job.partition);
  if (pending(start))
    add('submitted', job.submit_s === null ? null : date_text(job.submit_s * 1e6));
  else {
    facts.push(`${date_text(start.begin_us)}${
        json.running ? ', still running' : ` to ${date_text(start.begin_us + json.length_us)}`}`);
    facts.push(`${duration_text(json.length_us)}${
        job.time_limit_s ? ` of ${duration_text(job.time_limit_s * 1e6)} allowed` : ''}`);
  }
  const asked = [];
  if (job.requested_nodes !== null) asked.push(count_of(job.requested_nodes, 'node'));
  if (job.requested_cpus !== null) asked.push(count_of(job.requested_cpus, 'CPU'));
  if (job.requested_memory) asked.push(job.requested_memory);
  if (asked.length) facts.push(`requested ${asked.join(', ')}`);
  return facts.join(' · ');
}

function pending(start) {
  return start.job.start_s === null && start.runs.length === 0;
}

function tile(name, value, note, ratio) {
  const parts = [
    element('div', {cls: 'tile-name', text: name}), element('div', {cls: 'tile-value', text: value})
  ];
  if (ratio !== null && ratio !== undefined) {
    const bar = element('div', {cls: 'tile-bar'}, [element('div')]);
    bar.firstChild.style.width = `${Math.min(100, Math.max(0, ratio * 100))}%`;
    parts.push(bar);
  }
  parts.push(element('div', {cls: 'tile-note', text: note}));
  return element('div', {cls: 'tile'}, parts);
}

// "4 → 2 → 3", or the first and the last of many.
function sizes_text(counts) {
  if (counts.length > 4) return `${counts[0]} → … → ${counts[counts.length - 1]}`;
  return counts.join(' → ') || DASH;
}

function tiles_of(start) {
  const whole = start.summary.find(row => row.kind === 'job');
  if (!whole) return [];
  const counts = start.json.allocations.map(allocation => allocation.node_count);
  const idle = start.nodes.filter(node => node.state === 'idle').length;
  const silent = start.nodes.filter(node => node.state === 'silent').length;
  const rest =
      [idle ? `${idle} never used` : '', silent ? `${silent} told nothing` : ''].filter(Boolean);
  const limit = Math.max(0, ...start.nodes.map(node => node.memory_allocated_bytes ?? 0));
  const share = limit > 0 && whole.memory_bytes !== null ? whole.memory_bytes / limit : null;
  const wasted = whole.wasted_node_s !== null && whole.allocated_node_s > 0 ?
      whole.wasted_node_s / whole.allocated_node_s :
      null;
  return [
    tile(
        'Nodes', sizes_text(counts),
        rest.join(', ') ||
            (counts.length > 1 ? `resized ${count_of(counts.length - 1, 'time')}` :
                                 'all of them used')),
    tile(
        'Allocated', node_time_text(whole.allocated_node_s),
        `${number_text(whole.cpus)} CPUs on average`),
    tile(
        'CPUs busy', percent_text(whole.efficiency),
        `${number_text(whole.cpus_busy)} of ${number_text(whole.cpus)} on average`,
        whole.efficiency),
    tile(
        'Peak memory', bytes_text(whole.memory_bytes),
        limit > 0 ? `of ${bytes_text(limit)} on its node` : 'on one node', share),
    tile(
        'Wasted', node_time_text(whole.wasted_node_s),
        wasted === null ? '' : `${percent_text(wasted)} of what was allocated`, wasted),
  ];
}

// Why there is nothing to draw.
function empty_text(start) {
  if (pending(start)) {
    return `The job has not started: ${state_text(start)}. There is nothing to draw yet.`;
  }
  if (start.nodes.length === 0)
    return 'No node of this job is known: neither records nor telemetry name one.';
  if (start.runs.length === 0)
    return 'No telemetry was recorded: what follows is from the records of the scheduler alone.';
  const samples = ['cpus', 'memory'].some(which => start.series(-1, which).t.length > 0);
  return samples ?
      '' :
      'No samples were recorded: steps and phases are known, CPU time and memory over time are not.';
}

const missing = {
  all: false,

  draw() {
    const sentences = view.start.json.missing, few = 4;
    by_id('missing').hidden = sentences.length === 0;
    const shown = this.all ? sentences : sentences.slice(0, few);
    by_id('missing-list').replaceChildren(...shown.map(text => element('li', {text})));
    by_id('missing-more').hidden = sentences.length <= few;
    by_id('missing-more').textContent = this.all ? 'Fewer' : `All ${sentences.length}`;
  },
};

function more_of(start) {
  const seen = [...start.summary, ...start.bars].reduce((flags, row) => flags | row.flags, 0);
  const terms = (title, pairs) => pairs.length === 0 ? [] : [element('details', {}, [
    element('summary', {text: `${title} (${pairs.length})`}),
    element(
        'dl', {},
        pairs.flatMap(
            ([name, value]) => [element('dt', {text: name}), element('dd', {text: value})]))
  ])];
  return [
    ...terms('Attributes', start.json.attributes),
    ...terms(
        'What the flags mean',
        view.flags.filter(([bit]) => seen & bit).map(([, word, meaning]) => [word, meaning]))
  ];
}

function legend_of(start) {
  const key = (text, cls) =>
      element('span', {cls: 'key'}, [element('span', {cls: `sample ${cls}`}), text]);
  const states = [key('idle', 'is-idle')];
  if (start.nodes.some(node => node.state === 'silent'))
    states.push(key('no telemetry', 'is-silent'));
  if (start.lanes.some(lane => lane.gaps.length))
    states.push(key('no samples, or recorder lost', 'is-gap'));
  if (start.resizes.length) states.push(key('resized', 'is-resize'));
  if (start.notices.length) states.push(element('span', {cls: 'key'}, ['▲ notice']));
  if (view.colour !== 'phases') {
    const scale = HEAT[theme.name()].map(colour => {
      const box = element('span', {cls: 'sample'});
      box.style.background = colour;
      return box;
    });
    return [
      element('span', {cls: 'key scale'}, ['0 % ', ...scale, ' 100 % of what is allocated']),
      ...states
    ];
  }
  const most = 16;
  const keys = start.paths.slice(0, most).map(
      (path, i) => element(
          'span', {cls: 'key'},
          [swatch(i), element('span', {cls: 'key-name', text: path, attributes: {title: path}})]));
  if (start.paths.length > most) keys.push(`and ${start.paths.length - most} more, see the table`);
  return [...keys, key('step', 'is-step'), ...states];
}

function draw_head() {
  const {start} = view;
  by_id('job-title').textContent =
      `Job ${job_label(start.job)}${start.job.name ? ` · ${start.job.name}` : ''}`;
  document.title = `Job ${job_label(start.job)}, sphase`;
  by_id('job-state').textContent = state_text(start);
  by_id('job-state').dataset.state = (start.job.state ?? '').split(' ')[0];
  by_id('job-facts').textContent = facts_of(start);
  by_id('tiles').replaceChildren(...tiles_of(start));
  by_id('tiles').hidden = start.summary.length === 0 || pending(start);
  const why = empty_text(start);
  by_id('empty').textContent = why;
  by_id('empty').hidden = !why;
  by_id('plots').hidden = start.nodes.length === 0 || pending(start);
  by_id('charts').hidden = start.runs.length === 0;
  by_id('table').hidden = pending(start);
  missing.draw();
  const more = more_of(start);
  by_id('more').replaceChildren(...more);
  by_id('more').hidden = more.length === 0;
}
