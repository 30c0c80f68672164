// How numbers, shapes and tokens are written on the page. The minus is the typographic one, which is as wide as a plus,
// so that columns of signed numbers line up.

const MINUS = "\u2212";

const DTYPES: Record<string, string> = {
  float64: "f64",
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  float8_e4m3fn: "f8",
  float8_e5m2: "f8",
  complex64: "c64",
  complex128: "c128",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  bool: "bool",
};

/** `[1,8,384]`. */
export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(",")}]`;
}

/** `float32` as `f32`; a name that has no short form stays. */
export function dtypeText(dtype: string): string {
  return DTYPES[dtype] ?? dtype;
}

/** A number that is not finite, in words; null for a finite one. */
function oddText(value: number): string | null {
  if (Number.isNaN(value)) return "NaN";
  if (value === Infinity) return "+inf";
  if (value === -Infinity) return `${MINUS}inf`;
  return null;
}

/** A number with `digits` places after the point; what rounds to zero has no sign. */
export function fixed(value: number, digits: number): string {
  const odd = oddText(value);
  if (odd !== null) return odd;
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** Like `fixed`, with a plus before what is above zero. */
export function signed(value: number, digits: number): string {
  const text = fixed(value, digits);
  return value > 0 && Number.isFinite(value) && Number(text) !== 0 ? `+${text}` : text;
}

/** A number with `digits` significant digits, as short as it goes: `0.00123`, `12.9`, `1.2e−7`, `0`. */
export function significant(value: number, digits = 4): string {
  const odd = oddText(value);
  if (odd !== null) return odd;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(size.toPrecision(digits));
  const plain = rounded >= 1e-4 && rounded < 10 ** Math.max(digits + 2, 6);
  const text = plain ? String(rounded) : rounded.toExponential().replace("e+", "e").replace("-", MINUS);
  return value < 0 ? MINUS + text : text;
}

/** A probability from 0 to 1: `0.98`, `0.004`, `1.2e−7`; never a plain 0 or 1 for what is neither. */
export function probability(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === 0 || value === 1) return String(value);
  if (value > 0.995) return value.toFixed(4) === "1.0000" ? ">0.9999" : value.toFixed(4);
  if (value >= 0.01) return value.toFixed(3);
  return significant(value, 2);
}

/** `1_580_000` as `1.58M`. */
export function count(value: number): string {
  const size = Math.abs(value);
  for (const [unit, letter] of [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    // What would be written as 1000 of a unit belongs to the next one.
    if (size >= unit * 0.9995) return `${Number((value / unit).toPrecision(3))}${letter}`;
  }
  return String(value);
}

/** Seconds as `12 ms`, `0.9 s`, `2 min 5 s`. */
export function duration(seconds: number): string {
  if (seconds < 0.0005) return "<1 ms";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** `1 cell`, `2 cells`, `2 entries`, `2 batches`. */
export function counted(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural(noun)}`;
}

function plural(noun: string): string {
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`;
  return /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`;
}

const VISIBLE: Record<string, string> = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "⍽" };

/** A token with its spaces and line ends visible: ` Paris` as `␣Paris`; the empty one as `∅`. */
export function visibleToken(text: string): string {
  if (text === "") return "∅";
  return text.replace(/[ \n\t\r\u00a0]/g, (letter) => VISIBLE[letter]!);
}
