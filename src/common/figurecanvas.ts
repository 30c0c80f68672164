// Draws a figure on a canvas, and the files that pictures are saved as.
import { type Figure, type ImageItem, MONO, SANS, TEXT_SIZE, toSvg } from "./figure";
import type { Pixels } from "./paint";

// Pixels of a PNG for each of the figure's: sharp in a paper's column.
const PNG_SCALE = 2;

function canvasOf(page: Document, pixels: Pixels): HTMLCanvasElement {
  const canvas = page.createElement("canvas");
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  contextOf(canvas).putImageData(new ImageData(pixels.data, pixels.width, pixels.height), 0, 0);
  return canvas;
}

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d");
  if (context === null)
    throw new Error("This browser gives no canvas to draw on; export SVG or CSV instead.");
  return context;
}

function drawImage(context: CanvasRenderingContext2D, page: Document, item: ImageItem): void {
  const { x, y, width, height } = item.from;
  context.save();
  context.beginPath();
  context.rect(item.x, item.y, item.width, item.height);
  context.clip();
  // The whole image is drawn around the box, since browsers differ in what they do with fractions of source pixels.
  const across = item.width / width;
  const down = item.height / height;
  context.drawImage(
    canvasOf(page, item.pixels),
    item.x - x * across,
    item.y - y * down,
    item.pixels.width * across,
    item.pixels.height * down,
  );
  context.restore();
}

function draw(context: CanvasRenderingContext2D, page: Document, figure: Figure): void {
  context.imageSmoothingEnabled = false;
  context.textBaseline = "middle";
  context.fillStyle = figure.page;
  context.fillRect(0, 0, figure.width, figure.height);
  for (const item of figure.items) {
    switch (item.kind) {
      case "rect":
        if (item.fill !== undefined) {
          context.fillStyle = item.fill;
          context.fillRect(item.x, item.y, item.width, item.height);
        }
        if (item.stroke !== undefined) {
          context.strokeStyle = item.stroke;
          context.lineWidth = item.strokeWidth ?? 1;
          context.strokeRect(item.x, item.y, item.width, item.height);
        }
        break;
      case "gradient": {
        const fill = context.createLinearGradient(item.x, 0, item.x + item.width, 0);
        item.stops.forEach((colour, stop) => {
          fill.addColorStop(stop / (item.stops.length - 1), colour);
        });
        context.fillStyle = fill;
        context.fillRect(item.x, item.y, item.width, item.height);
        break;
      }
      case "line":
        context.strokeStyle = item.stroke;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(item.x1, item.y1);
        context.lineTo(item.x2, item.y2);
        context.stroke();
        break;
      case "text":
        context.font = `${item.bold ? "600 " : ""}${item.size ?? TEXT_SIZE}px ${item.mono ? MONO : SANS}`;
        context.textAlign = item.anchor === "middle" ? "center" : (item.anchor ?? "start");
        context.fillStyle = item.fill;
        context.fillText(item.text, item.x, item.y);
        break;
      case "image":
        drawImage(context, page, item);
        break;
    }
  }
}

/** The figure as a PNG file of twice its size. */
export async function pngOf(figure: Figure, page: Document): Promise<Blob> {
  const canvas = page.createElement("canvas");
  canvas.width = Math.ceil(figure.width * PNG_SCALE);
  canvas.height = Math.ceil(figure.height * PNG_SCALE);
  const context = contextOf(canvas);
  context.scale(PNG_SCALE, PNG_SCALE);
  draw(context, page, figure);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob === null)
    throw new Error("This browser could not make a PNG file of the picture; export SVG instead.");
  return blob;
}

/** The figure as an SVG file. */
export function svgOf(figure: Figure, page: Document): Blob {
  const text = toSvg(figure, (pixels) => canvasOf(page, pixels).toDataURL("image/png"));
  return new Blob([text], { type: "image/svg+xml" });
}
