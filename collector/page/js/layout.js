// Where things are in the lanes: heights, rows, and what lies under the pointer.

const AXIS_PX = 22;    // the time axis above the lanes
const EVENTS_PX = 20;  // resizes and notices
const ROW_PX = 18;
const PAD_PX = 4;  // above and below the rows of a tall lane
const THIN_PX = 16;
const SCREEN_PX = 620;  // more lanes than this are scrolled
const PAPER_PX = 340;   // nothing can be scrolled there
const SPLIT_PX = 3;     // rows narrower than this lie upon each other

const layout = {
  mode: 'full',
  tops: [],
  total: 0,
  head: AXIS_PX,
  height: 0,
  hits: []
};

function plot_width() {
  return by_id('lanes-scroll').clientWidth;
}

function tall_px(lane) {
  return Math.max(1, lane.rows) * ROW_PX + 2 * PAD_PX;
}

function most_px() {
  return theme.printing ? PAPER_PX : SCREEN_PX;
}

function choose_mode(lanes) {
  const tall = lanes.reduce((sum, lane) => sum + tall_px(lane), 0) <= most_px();
  const thin = lanes.length * THIN_PX <= most_px();
  const fits = {full: tall, thin, fit: true};
  if (view.density !== 'auto' && (!theme.printing || fits[view.density])) return view.density;
  if (view.colour === 'phases' && tall) return 'full';
  return thin ? 'thin' : 'fit';
}

function lane_px(lane, mode, count) {
  if (mode === 'full') return tall_px(lane);
  if (mode === 'thin') return THIN_PX;
  const share = Math.min(THIN_PX, most_px() / count);
  return theme.printing ? share : Math.max(1, Math.floor(share));
}

function lay_out() {
  const {lanes, job_lane, resizes, notices} = view.start;
  layout.mode = choose_mode(lanes);
  layout.events = resizes.length + notices.length > 0 ? EVENTS_PX : 0;
  layout.job = job_lane.rows > 0 ? tall_px(job_lane) + 6 : 0;
  layout.head = AXIS_PX + layout.events + layout.job;
  layout.tops = [0];
  for (const lane of lanes) {
    layout.tops.push(
        layout.tops[layout.tops.length - 1] + lane_px(lane, layout.mode, lanes.length));
  }
  layout.total = layout.tops[lanes.length];
  layout.height = layout.head + Math.min(layout.total, most_px()) + 2;
  by_id('lanes-scroll').style.height = `${layout.height}px`;
  by_id('lanes-spacer').style.height =
      `${Math.max(0, layout.head + layout.total + 2 - layout.height)}px`;
}

// {top, px, row_px, row_top} of a lane as it is on the canvas now.
function lane_box(lane) {
  if (lane.index < 0) {
    return {top: AXIS_PX + layout.events, px: layout.job - 6, row_px: ROW_PX, pad: PAD_PX};
  }
  const top = layout.head + layout.tops[lane.index] - by_id('lanes-scroll').scrollTop;
  const px = layout.tops[lane.index + 1] - layout.tops[lane.index];
  if (layout.mode === 'full') return {top, px, row_px: ROW_PX, pad: PAD_PX};
  const pad = px >= 8 ? 1 : 0;
  return {top, px, row_px: (px - 2 * pad) / Math.max(1, lane.rows), pad};
}

// Top and height of a row. Where rows would be too thin to see, deeper ones cover the others.
function row_box(box, row) {
  if (box.row_px < SPLIT_PX) return {top: box.top + box.pad, px: Math.max(1, box.px - 2 * box.pad)};
  const gap = box.row_px >= 8 ? 2 : box.row_px >= 5 ? 1 : 0;
  return {top: box.top + box.pad + row * box.row_px, px: box.row_px - gap};
}

function lane_at(y) {
  const {job_lane, lanes} = view.start;
  if (y < AXIS_PX + layout.events) return null;
  if (y < layout.head) return job_lane;
  const offset = y - layout.head + by_id('lanes-scroll').scrollTop;
  let low = 0, high = lanes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.tops[middle + 1] <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  return lanes[low] ?? null;
}

function covers(item, time, slack) {
  return item.begin - slack <= time && time <= item.end + slack;
}

// What of a lane is at this place: {lane, bar, run, notice, gap}, each if there is one.
function hit_at(x, y) {
  const lane = lane_at(y), time = time_of(x, plot_width());
  const slack = 2 * (view.to - view.from) / plot_width();
  const near_time = item => Math.abs(x_of(clamp_time(item.time), plot_width()) - x) < 7;
  if (!lane) {
    if (y < AXIS_PX || !layout.events) return {time};
    const resize = view.start.resizes.find(near_time);
    return {time, resize, notices: view.start.notices.filter(near_time)};
  }
  const box = lane_box(lane);
  const inside = row => {
    const {top, px} = row_box(box, row);
    return y >= top - 1 && y <= top + px + 1;
  };
  const found =
      lane.bars.filter(bar => covers(bar, time, slack) && inside(bar.run.first_row + bar.row));
  found.sort((a, b) => b.row - a.row || a.length - b.length);
  const over = lane.runs.filter(run => covers(run, time, slack));
  return {
    time,
    lane,
    bar: found[0],
    run: found[0]?.run ?? over.find(run => inside(run.first_row)) ?? over[0],
    notices: lane.index < 0 ? [] : lane.notices.filter(near_time),
    gap: lane.gaps.find(gap => covers(gap, time, 0)),
  };
}

// Notices may come from before the job's start, or after its end.
function clamp_time(time) {
  return Math.min(Math.max(0, time), view.start.length);
}

function scroll_to_lane(index) {
  if (index < 0) return;
  const scroll = by_id('lanes-scroll');
  const room = layout.height - layout.head - 2;
  const top = layout.tops[index], bottom = layout.tops[index + 1];
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  if (bottom > scroll.scrollTop + room) scroll.scrollTop = bottom - room;
}
