// Shapes and words on the canvas of the lanes.

const FONT = '12px system-ui, "DejaVu Sans", sans-serif';
const SMALL = '11px system-ui, "DejaVu Sans", sans-serif';

class LaneCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
  }

  clipped(top, bottom, paint) {
    const context = this.context;
    context.save();
    context.beginPath();
    context.rect(0, top, this.width, bottom - top);
    context.clip();
    paint();
    context.restore();
  }

  // Only right of the names.
  in_plot(paint) {
    const context = this.context;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.width - GUTTER - RIGHT, layout.height);
    context.clip();
    paint();
    context.restore();
  }

  x(time) {
    return x_of(time, this.width);
  }

  note(words, x, y) {
    const context = this.context;
    context.font = SMALL;
    const room = context.measureText(words).width + 10;
    context.fillStyle = theme.colour('card');
    context.fillRect(x - room / 2, y - 7, room, 14);
    context.fillStyle = theme.colour('soft');
    context.textAlign = 'center';
    context.fillText(words, x, y + 0.5);
    context.textAlign = 'left';
  }

  broken(x, top, px) {
    const context = this.context;
    context.strokeStyle = theme.colour('bad');
    context.lineWidth = 2;
    context.beginPath();
    for (let i = 0; i <= 4; i++) context.lineTo(x + (i % 2 ? 3 : -3), top + px * i / 4);
    context.stroke();
  }

  outline(left, top, wide, px) {
    const context = this.context;
    context.strokeStyle = theme.colour('text');
    context.lineWidth = 2;
    if (wide > 3 && px > 3) context.strokeRect(left + 1, top + 1, wide - 2, px - 2);
  }

  // Text inside of a bar, as far as it can be seen; on plain ground where the bar has a pattern.
  bar_text(text, left, wide, top, px, colour, ground) {
    const from = Math.max(left, GUTTER) + 5, room = Math.min(left + wide, this.width) - from - 3;
    if (room < 18) return;
    const context = this.context;
    context.font = FONT;
    let shown = text;
    if (context.measureText(text).width > room) {
      const part = Math.floor(text.length * room / context.measureText(text).width) - 1;
      if (part < 2) return;
      shown = `${text.slice(0, part)}…`;
    }
    if (ground) {
      context.fillStyle = ground;
      context.fillRect(from - 2, top + 1, context.measureText(shown).width + 4, px - 2);
    }
    context.fillStyle = colour;
    context.fillText(shown, from, top + px / 2 + 0.5);
  }

  // A triangle that stands on `y`.
  mark(at, y, size) {
    const context = this.context;
    const x =
        at > GUTTER - size ? Math.min(Math.max(at, GUTTER + size), this.width - RIGHT - size) : at;
    context.fillStyle = theme.colour('bad');
    context.beginPath();
    context.moveTo(x, y - 2 * size);
    context.lineTo(x - size, y);
    context.lineTo(x + size, y);
    context.fill();
  }

  // Cut in the middle: the ends of a node's name tell most.
  fitted(text, room) {
    const context = this.context;
    let kept = text.length, shown = text;
    while (kept > 4 && context.measureText(shown).width > room) {
      kept -= 1;
      shown =
          `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
    }
    return shown;
  }
}
