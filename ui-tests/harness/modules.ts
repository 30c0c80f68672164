// Loads the modules that widget models name: ipywidgets' own from this bundle, anywidget's from the file that its
// Python package installs, so that what is tested is the version the kernel uses.
import * as base from "@jupyter-widgets/base";
import * as controls from "@jupyter-widgets/controls";

type Exports = Record<string, unknown>;
type Factory = (...dependencies: unknown[]) => Exports;

const bundled: Record<string, Exports> = {
  "@jupyter-widgets/base": base,
  "@jupyter-widgets/controls": controls,
};
const fetched = new Map<string, Promise<Exports>>();

/** Run an AMD module whose dependencies are all bundled. */
async function fetchModule(name: string): Promise<Exports> {
  const response = await fetch(`nbextensions/${name}/index.js`);
  if (!response.ok) throw new Error(`No widget module ${name}: ${response.status} ${response.url}`);
  let exported: Exports | undefined;
  const define = (dependencies: string[], factory: Factory) => {
    exported = factory(...dependencies.map((dependency) => bundled[dependency]));
  };
  new Function("define", `${await response.text()}\n//# sourceURL=${response.url}`)(define);
  if (exported === undefined) throw new Error(`${name} defines no module.`);
  return exported;
}

export async function exportOf(module: string, name: string): Promise<unknown> {
  let exports = bundled[module];
  if (exports === undefined) {
    const loading = fetched.get(module) ?? fetchModule(module);
    fetched.set(module, loading);
    exports = await loading;
  }
  const found = exports[name];
  if (found === undefined) throw new Error(`${module} has no ${name}.`);
  return found;
}
