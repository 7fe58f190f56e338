// Colours. Phases: Okabe & Ito's palette, which people of all kinds of colour vision tell apart,
// with a pattern once it is used up, so that a phase is never told by its colour alone.

const PHASE_COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442'];
const PATTERNS = ['plain', 'stripes', 'dots', 'cross'];
// From nothing to all of it, by lightness first (after cividis).
const HEAT = {
  light: ['#f3ecd0', '#d9c778', '#a69d75', '#6f7078', '#3f4a6d', '#00224e'],
  dark: ['#1b2436', '#2f4269', '#5d6374', '#918b70', '#cdb957', '#fff2a8'],
};

const theme = {
  wish: 'auto',  // 'auto', 'light', 'dark'
  colours: {},
  patterns: new Map(),

  dark() {
    if (this.wish !== 'auto') return this.wish === 'dark';
    return matchMedia('(prefers-color-scheme: dark)').matches;
  },

  name() {
    return this.printing || !this.dark() ? 'light' : 'dark';
  },

  apply() {
    document.documentElement.dataset.theme = this.name();
    this.colours = {};
    this.patterns.clear();
  },

  toggle() {
    this.wish = this.dark() ? 'light' : 'dark';
    try {
      localStorage.setItem('sphase-theme', this.wish);
    } catch { /* a file on disk may have no storage */
    }
    this.apply();
  },

  load() {
    try {
      this.wish = localStorage.getItem('sphase-theme') ?? 'auto';
    } catch { /* as above */
    }
    this.apply();
  },

  // Value of a CSS variable.
  colour(name) {
    this.colours[name] ??=
        getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    return this.colours[name];
  },
};

function phase_colour(index) {
  return PHASE_COLOURS[index % PHASE_COLOURS.length];
}

// Black or white, whichever can be read on it.
function text_on(colour) {
  const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  return r * 0.299 + g * 0.587 + b * 0.114 > 140 ? '#111' : '#fff';
}

function draw_pattern(context, kind, size) {
  context.beginPath();
  if (kind === 'dots') context.arc(size / 2, size / 2, 1.4, 0, 7);
  if (kind !== 'dots') {
    context.moveTo(-1, size + 1);
    context.lineTo(size + 1, -1);
  }
  if (kind === 'cross') {
    context.moveTo(-1, -1);
    context.lineTo(size + 1, size + 1);
  }
  if (kind === 'dots')
    context.fill();
  else
    context.stroke();
}

function pattern(context, background, foreground, kind) {
  const key = `${background} ${foreground} ${kind}`;
  if (!theme.patterns.has(key)) {
    const size = 8, tile = document.createElement('canvas');
    tile.width = tile.height = size;
    const inner = tile.getContext('2d');
    if (background) {
      inner.fillStyle = background;
      inner.fillRect(0, 0, size, size);
    }
    inner.strokeStyle = inner.fillStyle = foreground;
    draw_pattern(inner, kind, size);
    theme.patterns.set(key, context.createPattern(tile, 'repeat'));
  }
  return theme.patterns.get(key);
}

// What to fill the bar of a phase with.
function phase_fill(context, index) {
  const colour = phase_colour(index);
  const kind = PATTERNS[Math.floor(index / PHASE_COLOURS.length) % PATTERNS.length];
  if (kind === 'plain') return colour;
  return pattern(context, colour, text_on(colour) === '#fff' ? '#ffffff90' : '#00000070', kind);
}

function heat_colour(ratio) {
  const scale = HEAT[theme.name()];
  const place = Math.min(1, Math.max(0, ratio)) * (scale.length - 1);
  return scale[Math.round(place)];
}

// A small picture of a phase's bar, for table and legend.
function swatch(index) {
  const made = element(
      'canvas', {cls: 'swatch', attributes: {width: 24, height: 24, 'aria-hidden': 'true'}});
  const context = made.getContext('2d');
  context.fillStyle = phase_fill(context, index);
  context.fillRect(0, 0, 24, 24);
  return made;
}
