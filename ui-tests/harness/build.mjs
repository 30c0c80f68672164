// Builds the test page into a folder: node ui-tests/harness/build.mjs OUTDIR.
import { copyFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = process.argv[2];
if (outdir === undefined) throw new Error("Name the folder to build into.");
await build({
  entryPoints: [join(here, "page.ts"), join(here, "page.css")],
  bundle: true,
  format: "esm",
  target: "es2022",
  outdir,
  sourcemap: "inline",
  loader: {
    ".svg": "dataurl",
    ".woff": "dataurl",
    ".woff2": "dataurl",
    ".ttf": "dataurl",
    ".eot": "dataurl",
  },
  // Packages made for Node too ask for these; a browser's build takes the branch without them.
  define: { global: "globalThis", "process.env": "{}" },
  logLevel: "warning",
});
await copyFile(join(here, "index.html"), join(outdir, "index.html"));
