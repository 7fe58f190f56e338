// The page of `sphase report --html`: plain modules without a build step, put together in the order
// of CMakeLists.txt. Times are µs after the beginning of the start unless a name says otherwise.
// Text of a job reaches the document by textContent and fillText alone.

const DASH = '–';

// Four significant digits at most; whole numbers stay whole.
function number_text(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en').replace(/,/g, ' ');
  if (size >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(size < 1 ? 2 : 3)));
}

function scaled_text(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    unit++;
  }
  return `${number_text(value)} ${units[unit]}`.trim();
}

function bytes_text(bytes) {
  if (bytes === null || bytes === undefined) return DASH;
  return scaled_text(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
}

function count_text(value) {
  if (value === null || value === undefined) return DASH;
  return scaled_text(value, 1000, ['', 'k', 'M', 'G', 'T', 'P']);
}

function percent_text(ratio) {
  if (ratio === null || ratio === undefined) return DASH;
  return `${number_text(Math.round(ratio * 1000) / 10)} %`;
}

function two(value) {
  return String(value).padStart(2, '0');
}

// "12 µs", "437.1 ms", "1.55 s", "1m02s", "1h02m03s", "3d04h05m"
function duration_text(us) {
  if (us === null || us === undefined) return DASH;
  if (us < 1e3) return `${number_text(us)} µs`;
  if (us < 999.5e3) return `${number_text(us / 1e3)} ms`;
  if (us < 59.995e6) return `${number_text(us / 1e6)} s`;
  const all = Math.round(us / 1e6);
  const s = all % 60, m = Math.floor(all / 60) % 60, h = Math.floor(all / 3600);
  if (h === 0) return `${m}m${two(s)}s`;
  if (h < 24) return `${h}h${two(m)}m${two(s)}s`;
  return `${Math.floor(h / 24)}d${two(h % 24)}h${two(m)}m`;
}

// A node-second figure as people count them: node-hours once there is a tenth of one.
function node_time_text(node_s) {
  if (node_s === null || node_s === undefined) return DASH;
  return node_s >= 360 ? `${number_text(node_s / 3600)} node-h` : `${number_text(node_s)} node-s`;
}

// Digits behind the second that tell times apart which are `step` apart.
function digits_for(step) {
  return Math.min(6, Math.max(0, Math.ceil(6 - Math.log10(step) - 1e-9)));
}

// Seconds since the start: "12.5 s" in a short job, "1:02:03.5" in a long one.
function offset_text(us, step, length) {
  const digits = digits_for(step);
  if (length < 120e6) return `${(us / 1e6).toFixed(digits)} s`;
  const sign = us < 0 ? '-' : '';
  const unit = 10 ** (6 - digits);
  const rounded = Math.round(Math.abs(us) / unit) * unit;
  const s = (rounded / 1e6) % 60, all = Math.floor(rounded / 60e6);
  const rest = s.toFixed(digits).padStart(digits > 0 ? 3 + digits : 2, '0');
  const h = Math.floor(all / 60);
  return h > 0 ? `${sign}${h}:${two(all % 60)}:${rest}` : `${sign}${all}:${rest}`;
}

// Local time of day.
function clock_text(epoch_us, step) {
  const date = new Date(epoch_us / 1e3);
  const digits = digits_for(step);
  let text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 60e6) return text;
  text += `:${two(date.getSeconds())}`;
  return digits ? `${text}.${String(epoch_us % 1e6).padStart(6, '0').slice(0, digits)}` : text;
}

function date_text(epoch_us) {
  const d = new Date(epoch_us / 1e3);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
      `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

function count_of(count, what) {
  return `${number_text(count)} ${what}${count === 1 ? '' : 's'}`;
}

const TIME_STEPS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  1e3,
  2e3,
  5e3,
  1e4,
  2e4,
  5e4,
  1e5,
  2e5,
  5e5,
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
      172800, 604800, 1209600, 2592000]
      .map(s => s * 1e6),
];

// Distance of the marks of a time axis, so that labels have room.
function time_step(from, to, pixels) {
  const least = (to - from) / Math.max(1, pixels / 95);
  return TIME_STEPS.find(step => step >= least) ?? TIME_STEPS[TIME_STEPS.length - 1];
}

// Round values of 0..most: some `wanted` of them.
function value_ticks(most, wanted, binary) {
  if (!(most > 0)) return [0];
  let unit = 1;
  if (binary)
    while (most / unit >= 1024) unit *= 1024;
  const raw = most / unit / wanted * 0.85;  // rather one more than half of them
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = unit * power * ([1, 2, 5, 10].find(n => n * power >= raw) ?? 10);
  const ticks = [];
  for (let i = 0; i * step <= most * 1.0001; i++) ticks.push(i * step);
  return ticks;
}

function by_id(id) {
  return document.getElementById(id);
}

// An element with text in it, never HTML.
function element(tag, {text, cls, attributes} = {}, children = []) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (cls) made.className = cls;
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function option(value, text) {
  return element('option', {text, attributes: {value}});
}
