// The phase table, linked with the lanes.

// Title, what it means, value of a row, and if it is a number.
const COLUMNS = [
  ['phase', 'indented: inside of what is above', null],
  ['n', 'instances', row => number_text(row.instances)],
  ['time', 'time with at least one instance open', row => duration_text(row.time_us)],
  ['CPUs', 'CPUs allocated', row => number_text(row.cpus)],
  ['busy', 'CPUs used on average', row => number_text(row.cpus_busy)],
  ['eff', 'busy / allocated', row => percent_text(row.efficiency)],
  ['peak memory', 'most on one node, without page cache', row => bytes_text(row.memory_bytes)],
  ['read', 'by read calls, from cache too', row => bytes_text(row.read_bytes), 'read_bytes'],
  [
    'written', 'by write calls, to cache too', row => bytes_text(row.written_bytes), 'written_bytes'
  ],
  ['IPC', 'instructions per cycle', row => number_text(row.ipc), 'ipc'],
  ['instr', 'instructions', row => count_text(row.instructions), 'instructions'],
  ['wasted node-h', 'node-hours allocated and not used', row => wasted_text(row, 3600)],
  [
    'wasted', 'share of what was allocated',
    row =>
        (row.wasted_node_s === null || !(row.allocated_node_s > 0) ?
             DASH :
             percent_text(row.wasted_node_s / row.allocated_node_s))
  ],
  [
    'imb', 'imbalance: CPU time of the busiest task / mean', row => number_text(row.imbalance),
    'imbalance'
  ],
];

function wasted_text(row, unit_s) {
  return row.wasted_node_s === null ? DASH : number_text(row.wasted_node_s / unit_s);
}

// Node-hours say little about a short job.
function columns_of(rows) {
  const columns =
      COLUMNS.filter(([, , , needs]) => !needs || rows.some(row => row[needs] !== null));
  if ((rows[0]?.allocated_node_s ?? 0) >= 3600) return columns;
  return columns.map(column => column[0] !== 'wasted node-h' ? column : [
    'wasted node-s', 'node-seconds allocated and not used', row => wasted_text(row, 1)
  ]);
}

const table = {
  each: false,

  rows() {
    return this.each && view.start.instances ? view.start.instances : view.start.summary;
  },

  draw() {
    const {start} = view, rows = this.rows();
    by_id('instances-pick').hidden = !start.instances;
    const columns = columns_of(rows);
    const head = columns.map(
        ([title, meaning], i) => (element(
            'th',
            {text: title, cls: i ? 'number' : '', attributes: {scope: 'col', title: meaning}})));
    head.push(element('th', {text: 'flags', attributes: {scope: 'col'}}));
    const body = rows.map((row, i) => this.row(row, columns, i));
    const made = element(
        'table', {attributes: {role: 'grid', 'aria-labelledby': 'table-title'}},
        [element('thead', {}, [element('tr', {}, head)]), element('tbody', {}, body)]);
    by_id('table-scroll').replaceChildren(rows.length ? made : element('p', {
      cls: 'nothing',
      text: 'Nothing was recorded: there are no phases to list.'
    }));
    this.note(rows);
    this.mark();
  },

  note(rows) {
    const {summary, json} = view.start;
    const notes = [];
    if (rows.length && !summary.some(row => row.path)) {
      notes.push(
          'No phase was marked: `sphase run NAME -- command` in the job script, or <sphase.h> in the program, does that.');
    }
    const left_out = this.each ? json.table.instances_left_out : json.table.rows_left_out;
    if (left_out) notes.push(`${count_of(left_out, 'more row')}: sphase report --csv lists all.`);
    if (json.lanes.joined_us) {
      notes.push(`In the lanes, phases nearer than ${
          duration_text(json.lanes.joined_us)} to the next of their name are drawn as one (×n).`);
    }
    if (json.lanes.runs_left_out)
      notes.push(`${count_of(json.lanes.runs_left_out, 'short step')} not drawn.`);
    by_id('table-note').textContent = notes.join(' ');
  },

  row(row, columns, i) {
    const cells = columns.map(
        ([, , value], k) =>
            (k ? element('td', {text: value(row), cls: 'number'}) : this.name_cell(row)));
    const words = view.flags.filter(([bit]) => row.flags & bit);
    cells.push(element('td', {
      text: words.map(([, word]) => word).join(', '),
      cls: 'flags',
      attributes: {title: words.map(([, word, meaning]) => `${word}: ${meaning}`).join('\n')}
    }));
    const made = element(
        'tr', {
          cls: `kind-${row.kind.replace(' ', '-')}`,
          attributes: {tabindex: i ? -1 : 0, 'aria-selected': 'false'}
        },
        cells);
    made.addEventListener('click', () => this.pick(row));
    made.addEventListener('dblclick', () => this.zoom(row));
    made.addEventListener('keydown', event => this.key(event, row, made));
    return made;
  },

  name_cell(row) {
    const name =
        row.kind.endsWith('phase') && row.number > 1 ? `${row.name} #${row.number}` : row.name;
    const parts = [element('span', {text: name, attributes: {title: row.path || row.name}})];
    if (row.path) parts.unshift(swatch(view.start.path_index.get(row.path)));
    const cell = element('th', {attributes: {scope: 'row'}}, parts);
    cell.style.paddingLeft = `${8 + row.level * 16}px`;
    return cell;
  },

  pick(row) {
    const picked = view.picked === row ? null : row;
    view.set({picked});
    speak(
        picked ?
            `${row.name}: ${duration_text(row.time_us)}, from ${view.precise_text(row.begin_us)}` :
            '');
  },

  // To the row, with a little around it.
  zoom(row) {
    const around = Math.max(10, (row.end_us - row.begin_us) * 0.04);
    view.picked = row;
    view.show(row.begin_us - around, row.end_us + around);
    view.changed('state');
  },

  key(event, row, made) {
    const to = {
      ArrowDown: made.nextElementSibling,
      ArrowUp: made.previousElementSibling
    }[event.key];
    if (to) {
      made.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    } else if (event.key === 'Enter') {
      this.zoom(row);
    } else if (event.key === ' ') {
      this.pick(row);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  },

  mark() {
    const rows = this.rows();
    document.querySelectorAll('#table-scroll tbody tr').forEach((made, i) => {
      made.setAttribute('aria-selected', String(rows[i] === view.picked));
    });
  },

  // The row that a bar belongs to.
  row_of(bar) {
    return this.rows().find(row => row.path === bar.path && belongs(bar, row)) ?? null;
  },
};
