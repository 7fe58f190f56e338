// What is shown: the window of time, the node, the selection; and the gestures that change it.

const GUTTER = 132;  // left of every plot: names and numbers
const RIGHT = 14;
const SHORTEST_US = 20;  // the window is never shorter

const view = {
  start: null,  // Start
  from: 0,
  to: 1,         // the window
  node: -1,      // charts: -1 = the sum over all nodes
  focus: -1,     // lane that the keyboard is at
  picked: null,  // row of the phase table
  bar: null,     // bar that the keyboard is at
  colour: 'phases',
  density: 'auto',
  clock: 'offset',
  scale: 'held',
  counter: '',
  listeners: [],

  whole() {
    return this.from <= 0 && this.to >= this.start.length;
  },

  // Leaves the window where it was if it still is in there; a whole window stays whole.
  bound() {
    const length = this.start.length;
    const width = Math.min(length, Math.max(SHORTEST_US, this.to - this.from));
    this.from = Math.min(Math.max(0, this.from), length - width);
    this.to = this.from + width;
  },

  show(from, to) {
    this.from = from;
    this.to = to;
    this.bound();
    this.changed('window');
  },

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  },

  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  },

  reset() {
    this.show(0, this.start.length);
  },

  set(values) {
    Object.assign(this, values);
    this.changed('state');
  },

  // All changes of one frame are drawn at once.
  changed(what) {
    this.pending = {...this.pending, [what]: true};
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      const pending = this.pending;
      this.pending = {};
      this.waiting = false;
      for (const listener of this.listeners) listener(pending);
    });
  },

  time_text(time, step) {
    if (this.clock === 'clock') return clock_text(this.start.begin_us + Math.round(time), step);
    return offset_text(time, step, this.start.length);
  },

  // A time in words, fine enough for the zoom.
  precise_text(time) {
    return this.time_text(time, Math.max(1, (this.to - this.from) / 1000));
  },

  ticks(pixels) {
    const step = time_step(this.from, this.to, pixels);
    const origin = this.clock === 'clock' ? this.clock_origin(step) : 0;
    const ticks = [];
    for (let i = Math.ceil((this.from - origin) / step); origin + i * step <= this.to; i++) {
      const v = origin + i * step;
      ticks.push({v, label: this.time_text(v, step)});
    }
    return ticks;
  },

  // Round times of day are not round since the start.
  clock_origin(step) {
    const offset_us = new Date(this.start.begin_us / 1e3).getTimezoneOffset() * 60e6;
    return -((this.start.begin_us - offset_us) % step);
  },
};

// Where a time is within a plot of this width, and back.
function x_of(time, width) {
  return GUTTER + (time - view.from) / (view.to - view.from) * (width - GUTTER - RIGHT);
}

function time_of(x, width) {
  return view.from + (x - GUTTER) / (width - GUTTER - RIGHT) * (view.to - view.from);
}

// Drag: zoom to it. Shift or middle button and drag: pan. Ctrl and wheel: zoom. Shift and wheel, or
// a wheel to the side: pan. Double click: the whole job.
class Gestures {
  constructor(plot, {click} = {}) {
    this.plot = plot;
    this.band = plot.querySelector('.band');
    this.click = click;
    this.drag = null;
    plot.addEventListener('pointerdown', event => this.down(event));
    plot.addEventListener('pointermove', event => this.move(event));
    plot.addEventListener('pointerup', event => this.up(event));
    plot.addEventListener('pointercancel', () => this.stop());
    plot.addEventListener('dblclick', event => this.x(event) > GUTTER && view.reset());
    plot.addEventListener('wheel', event => this.wheel(event), {passive: false});
  }

  x(event) {
    return event.clientX - this.plot.getBoundingClientRect().left;
  }

  time(x) {
    return time_of(x, plot_width());
  }

  down(event) {
    if (event.button > 1) return;
    const x = this.x(event);
    this.drag = {
      x,
      pan: event.shiftKey || event.button === 1,
      from: view.from,
      to: view.to,
      label: x < GUTTER
    };
    if (this.drag.pan) event.preventDefault();
  }

  move(event) {
    if (!this.drag || this.drag.label) return;
    const x = this.x(event);
    if (Math.abs(x - this.drag.x) > 4 && !this.drag.moved) {
      this.drag.moved = true;
      this.plot.setPointerCapture(event.pointerId);
    }
    if (!this.drag.moved) return;
    hide_tip();
    if (this.drag.pan)
      this.pan(x);
    else
      this.mark(x);
  }

  pan(x) {
    const {from, to} = this.drag;
    const by = (this.drag.x - x) / (plot_width() - GUTTER - RIGHT) * (to - from);
    view.show(from + by, to + by);
  }

  mark(x) {
    const left = Math.max(GUTTER, Math.min(x, this.drag.x));
    const right = Math.min(plot_width() - RIGHT, Math.max(x, this.drag.x));
    this.band.style.display = 'block';
    this.band.style.left = `${left}px`;
    this.band.style.width = `${Math.max(0, right - left)}px`;
    this.drag.left = left;
    this.drag.right = right;
  }

  up(event) {
    const drag = this.drag;
    this.stop();
    if (!drag) return;
    if (!drag.moved)
      this.click?.(event, drag.x);
    else if (!drag.pan && drag.right - drag.left > 4) {
      view.show(this.time(drag.left), this.time(drag.right));
    }
  }

  stop() {
    this.drag = null;
    this.band.style.display = 'none';
  }

  wheel(event) {
    const x = this.x(event);
    const side = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      view.zoom(Math.exp(Math.sign(event.deltaY) * 0.25), this.time(Math.max(GUTTER, x)));
    } else if (side) {
      event.preventDefault();
      view.pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
    }
  }
}
