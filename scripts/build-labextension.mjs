// Builds the JupyterLab extension: src/labextension -> build/labextension (one module and one style, with JupyterLab's
// own packages left out) -> nnsight_lab/labextension, as JupyterLab loads it.
import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { build } from "esbuild";

const outdir = "build/labextension";

await rm(outdir, { recursive: true, force: true });
await rm("nnsight_lab/labextension", { recursive: true, force: true });
await build({
  entryPoints: [
    { in: "src/labextension/index.ts", out: "index" },
    { in: "src/labextension/style.css", out: "style" },
  ],
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  external: ["@jupyterlab/*", "@lumino/*"],
  outdir,
  minify: true,
  legalComments: "none",
  logLevel: "info",
});
const { status, error } = spawnSync("jupyter-builder", ["build", "."], { stdio: "inherit" });
if (error)
  console.error(`jupyter-builder could not be started (pip install jupyter-builder): ${error.message}`);
process.exit(status ?? 1);
