// Everything by the keyboard.

const KEYS = [
  ['← →', 'move in time; with Shift faster'],
  ['↑ ↓', 'from node to node; in the table from row to row'],
  ['+ −', 'zoom'],
  ['0', 'the whole job'],
  ['[ ]', 'the phase before, the next one (of the node)'],
  ['Enter', 'zoom to the phase, or to the row of the table'],
  ['Space', 'in the table: mark the row in the lanes'],
  ['n', 'charts of the node that the arrows are at, or of all'],
  ['c', 'colour: phases, CPUs busy, memory used'],
  ['l', 'lanes: tall, thin, all at once'],
  ['k', 'time since the start, or time of day'],
  ['y', 'charts as high as what is allocated, or as what is used'],
  ['t', 'dark or light'],
  ['Esc', 'mark nothing; then the whole job'],
  ['?', 'this list'],
  ['drag', 'zoom to what is marked; with Shift: move'],
  ['Ctrl + wheel', 'zoom; Shift + wheel: move'],
  ['double click', 'the whole job'],
];

function cycle(id) {
  const select = by_id(id);
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event('change'));
}

function move_focus(by) {
  const count = view.start.lanes.length;
  const focus = Math.min(count - 1, Math.max(0, view.focus + by));
  scroll_to_lane(focus);
  view.set({focus, bar: null});
  speak(node_lines(view.start.lanes[focus]).join('. '));
}

// To the phase that begins before or after the one that the keyboard is at.
function move_bar(by) {
  const lane = view.focus < 0 ?
      view.start.job_lane.bars.length ? view.start.job_lane : view.start.lanes[0] :
      view.start.lanes[view.focus];
  if (!lane || lane.bars.length === 0) return speak('no phase here');
  const bars = [...lane.bars].sort((a, b) => a.begin - b.begin || a.row - b.row);
  const now = bars.indexOf(view.bar);
  const i = now < 0 ? bars.findIndex(bar => bar.end >= view.from) : now + by;
  const bar = bars[Math.min(bars.length - 1, Math.max(0, i))];
  if (bar.end < view.from || bar.begin > view.to) {
    const width = view.to - view.from;
    view.show(bar.begin - width / 2, bar.begin + width / 2);
  }
  view.set({bar, picked: table.row_of(bar)});
  speak(`${lane.name}: ${bar_lines(bar).join('. ')}`);
}

function escape() {
  if (view.picked || view.bar)
    view.set({picked: null, bar: null});
  else if (!view.whole())
    view.reset();
  else
    view.set({focus: -1, node: -1});
  hide_tip();
}

function zoom_to_bar() {
  if (!view.bar) return false;
  const around = Math.max(10, view.bar.length * 0.04);
  view.show(view.bar.begin - around, view.bar.end + around);
  return true;
}

const ACTIONS = {
  'ArrowLeft': event => view.pan(event.shiftKey ? -0.5 : -0.1),
  'ArrowRight': event => view.pan(event.shiftKey ? 0.5 : 0.1),
  'ArrowUp': () => move_focus(-1),
  'ArrowDown': () => move_focus(1),
  'PageUp': () => move_focus(-10),
  'PageDown': () => move_focus(10),
  '+': () => view.zoom(0.7),
  '=': () => view.zoom(0.7),
  '-': () => view.zoom(1 / 0.7),
  '0': () => view.reset(),
  'Home': () => view.reset(),
  '[': () => move_bar(-1),
  ']': () => move_bar(1),
  'Enter': zoom_to_bar,
  'n': () => view.set({node: view.node === view.focus ? -1 : view.focus}),
  'c': () => cycle('colour-select'),
  'l': () => cycle('density-select'),
  'k': () => cycle('clock-select'),
  'y': () => cycle('scale-select'),
  't': () => toggle_theme(),
  'Escape': escape,
  '?': () => by_id('help').showModal(),
};

// Arrows, paging and Enter belong to the lanes where these have the focus; letters work anywhere
// but where something is typed or chosen.
const OF_LANES = new Set(
    ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'Enter']);

function on_key(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !view.start || by_id('help').open) return;
  if (event.target.closest?.('select, input, button, summary') && event.key !== 'Escape') return;
  if (OF_LANES.has(event.key) && document.activeElement !== by_id('lanes-scroll')) return;
  const action = ACTIONS[event.key];
  if (!action || action(event) === false) return;
  event.preventDefault();
}

function make_help() {
  by_id('help-keys')
      .replaceChildren(...KEYS.flatMap(
          ([key, meaning]) => (
              [element('dt', {}, [element('kbd', {text: key})]), element('dd', {text: meaning})])));
  by_id('help-button').addEventListener('click', () => by_id('help').showModal());
  document.addEventListener('keydown', on_key);
}
