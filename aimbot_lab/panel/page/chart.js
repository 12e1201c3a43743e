// A canvas that is drawn anew where its size, the scheme of colours or what it shows changes.

export class Chart {
  /** `paint(context, {width, height, colour})` draws, in pixels of the page. */
  constructor(canvas, paint) {
    this.canvas = canvas;
    this.paint = paint;
    this.frame = this.frame.bind(this);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.frame);
    this.sized = new ResizeObserver(this.frame);
    this.sized.observe(canvas);
  }

  close() {
    this.scheme.removeEventListener("change", this.frame);
    this.sized.disconnect();
  }

  frame() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    if (!context) return; // no canvas: the page has said so
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (role) => style.getPropertyValue(`--${role}`).trim();
    this.paint(context, { width, height, colour });
  }
}
