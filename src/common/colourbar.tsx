// What the colours of a picture stand for: a bar with values, and the colours of what is no finite number with their
// counts.
import { gradient, stopsFor, type Theme } from "./colours";
import { significant } from "./format";
import { barTicks } from "./ticks";
import type { ColourRange, Counts } from "./wire";

const ODD = [
  ["nan", "NaN", "nan", "×"],
  ["positive_infinity", "+inf", "positiveInfinity", "∧"],
  ["negative_infinity", "−inf", "negativeInfinity", "∨"],
] as const;

export function ColourBar({
  colours,
  odd,
  theme,
}: {
  colours: ColourRange;
  odd: Counts | null;
  theme: Theme;
}) {
  const beyond = colours.beyond_low + colours.beyond_high;
  return (
    <div class="nnsl-colourbar">
      <div
        class="nnsl-colourbar-bar"
        role="img"
        aria-label={`Colours from ${significant(colours.low, 3)} to ${significant(colours.high, 3)}`}
        style={{ background: gradient(stopsFor(theme, colours.low)) }}
      />
      <div class="nnsl-colourbar-ticks" aria-hidden="true">
        {barTicks(colours).map(({ share, text }) => (
          <span key={share} style={{ left: `${share * 100}%` }}>
            {text}
          </span>
        ))}
      </div>
      <div class="nnsl-legend">
        {beyond > 0 && (
          <span>
            {beyond.toLocaleString("en")} beyond, from {significant(colours.smallest, 3)} to{" "}
            {significant(colours.largest, 3)}
          </span>
        )}
        {odd !== null &&
          ODD.map(
            ([count, name, colour, sign]) =>
              odd[count] > 0 && (
                <span key={name}>
                  <i class="nnsl-swatch" style={{ background: theme[colour] }} aria-hidden="true">
                    {sign}
                  </i>
                  {name} {odd[count].toLocaleString("en")}
                </span>
              ),
          )}
      </div>
    </div>
  );
}
