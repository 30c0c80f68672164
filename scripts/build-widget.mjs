// Builds the Lab's page: src/widget -> nnsight_lab/widgets/static/lab.js and lab.css. With --watch it builds on change,
// unminified and with source maps. A release bundle over the budget fails the build.
import { readFile } from "node:fs/promises";
import { build, context } from "esbuild";

const BUDGET = 300_000;
const outdir = "nnsight_lab/widgets/static";
const watching = process.argv.includes("--watch");

// The contract's schema is checked against, not read: what a page does not need of it is left out.
const strippedSchema = {
  name: "stripped-schema",
  setup(b) {
    b.onLoad({ filter: /wire\.schema\.json$/ }, async ({ path }) => ({
      contents: JSON.stringify(JSON.parse(await readFile(path, "utf8")), (key, value) =>
        key === "discriminator" ? undefined : value,
      ),
      loader: "json",
    }));
  },
};

const options = {
  entryPoints: [
    { in: "src/widget/index.ts", out: "lab" },
    { in: "src/widget/lab.css", out: "lab" },
  ],
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir,
  minify: !watching,
  sourcemap: watching,
  metafile: true,
  legalComments: "none",
  logLevel: "info",
  plugins: [strippedSchema],
};

if (watching) {
  await (await context(options)).watch();
} else {
  const { metafile } = await build(options);
  const size = Object.entries(metafile.outputs).find(([path]) => path.endsWith("lab.js"))[1].bytes;
  console.log(`lab.js: ${size} bytes of at most ${BUDGET}`);
  if (size > BUDGET) process.exit(1);
}
