// The test page: a notebook reduced to what a widget sees of one. It connects to the kernel named in its address,
// takes over the widgets that the kernel has and shows again those it showed before a reload. Tests drive it through
// `window.harness`. Without a kernel in the address it shows saved state.
//
// Address: index.html?token=T&kernel=ID&theme=light&show=WIDGET,WIDGET
import { type Kernel, KernelManager, ServerConnection } from "@jupyterlab/services";
import { Cells, type Outcome } from "./cells";
import { PageManager } from "./manager";

type Saved = Awaited<ReturnType<PageManager["savedState"]>>;

const SHOWN = "nnsight-lab-shown";
const query = new URLSearchParams(location.search);
const manager = new PageManager();
const cells = new Cells(document.getElementById("cells") as HTMLElement, manager);

function setTheme(name: string): void {
  const link = document.getElementById("theme") as HTMLLinkElement;
  link.href = `themes/${name}.css`;
  document.body.dataset.jpThemeName = name === "dark" ? "JupyterLab Dark" : "JupyterLab Light";
  document.body.dataset.jpThemeLight = String(name !== "dark");
}

async function connected(): Promise<Kernel.IKernelConnection | null> {
  const id = query.get("kernel");
  if (id === null) return null;
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: `${location.origin}/`,
    wsUrl: `${location.origin.replace(/^http/, "ws")}/`,
    token: query.get("token") ?? "",
    appendToken: true,
  });
  const kernels = new KernelManager({ serverSettings });
  await kernels.ready;
  const connection = kernels.connectTo({ model: { id, name: "python3" } });
  await manager.connect(connection);
  for (const id of remembered()) await cells.show(id);
  return connection;
}

setTheme(query.get("theme") ?? "light");
const kernel = connected();

async function live(): Promise<Kernel.IKernelConnection> {
  const connection = await kernel;
  if (connection === null) throw new Error("The page has no kernel.");
  return connection;
}

function remembered(): string[] {
  const before = sessionStorage.getItem(SHOWN);
  if (before !== null) return JSON.parse(before) as string[];
  return query.get("show")?.split(",") ?? [];
}

function remember(): void {
  sessionStorage.setItem(SHOWN, JSON.stringify(cells.shown));
}

const harness = {
  setTheme,
  /** Resolves when the page is connected and shows what it showed before. */
  async ready(): Promise<void> {
    await kernel;
  },
  async execute(code: string): Promise<Outcome> {
    const outcome = await cells.execute(await live(), code);
    remember();
    return outcome;
  },
  /** One more view of a widget. */
  async show(id: string): Promise<void> {
    await cells.show(id);
    remember();
  },
  async status(): Promise<string> {
    return (await live()).status;
  },
  async interrupt(): Promise<void> {
    await (await live()).interrupt();
  },
  async restart(): Promise<void> {
    await (await live()).restart();
  },
  /** What saving the notebook would keep of its widgets. */
  async save(): Promise<{ state: Saved; shown: string[] }> {
    return { state: await manager.savedState(), shown: cells.shown };
  },
  /** Show saved widgets without a kernel. */
  async open({ state, shown }: { state: Saved; shown: string[] }): Promise<void> {
    await manager.set_state(state);
    for (const id of shown) await cells.show(id);
  },
};

declare global {
  interface Window {
    harness: typeof harness;
  }
}
window.harness = harness;
