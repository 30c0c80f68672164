// @vitest-environment jsdom
// The results' tabs and the module tree, against a kernel that answers as it is told to.
import { act, cleanup, render, screen, waitFor } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { answerWith, FakeKernel, labWith, type Said, viewWith } from "../testing/kernel";
import { Results } from "./results";
import { ModuleTree } from "./tree";

beforeAll(() => {
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});
afterEach(cleanup);

const done: Said = { reply: { kind: "done", revision: 2 } as Said["reply"] };

describe("the results", () => {
  it("are tabs of which one is selected and can be reached by tab; arrows turn around", async () => {
    const user = userEvent.setup();
    const lab = labWith(new FakeKernel());
    lab.receive("view", viewWith({}));
    render(<Results lab={lab} />);
    screen.getByRole("tablist", { name: "Results" });
    const chosen = () => screen.getByRole("tab", { selected: true }).textContent;
    const stops = () => screen.getAllByRole("tab").filter((tab) => tab.tabIndex === 0);
    expect(chosen()).toBe("Answer");
    stops()[0]!.focus();
    for (const [key, name] of [
      ["{ArrowRight}", "Activation"],
      ["{End}", "Lens"],
      ["{ArrowRight}", "Answer"],
      ["{ArrowLeft}", "Lens"],
      ["{Home}", "Answer"],
    ] as const) {
      await user.keyboard(key);
      expect(chosen()).toBe(name);
      expect(document.activeElement!.textContent).toBe(name);
      expect(stops().map((tab) => tab.textContent)).toEqual([name]);
    }
    const panel = screen.getByRole("tabpanel", { name: "Answer" });
    expect(screen.getByRole("tab", { selected: true }).getAttribute("aria-controls")).toBe(panel.id);
  });

  it("say the headline, and that it is of an earlier state", async () => {
    const lab = labWith(new FakeKernel());
    lab.receive("view", viewWith({}));
    render(<Results lab={lab} />);
    await act(() => lab.receive("answer", answerWith({ headline: "Paris → London" })));
    expect(screen.getByRole("status").textContent).toBe("Paris → London");
    await act(() =>
      lab.receive("status", {
        work: null,
        waiting: [],
        blocked: false,
        done: 0,
        total: 0,
        unit: "",
        failure: null,
        failed: null,
        stale: true,
      }),
    );
    expect(screen.getByRole("status").textContent).toBe("Paris → Londonof an earlier state");
  });
});

// "" > h > 0..4, head: layers of equal structure.
const TREE = {
  names: ["", "h", "0", "1", "2", "3", "4", "head"],
  depth: [0, 1, 2, 2, 2, 2, 2, 1],
  kind: [0, 1, 2, 2, 2, 2, 2, 3],
};

function treeKernel() {
  const count = TREE.names.length;
  const columns = Float64Array.from([
    ...TREE.depth,
    ...TREE.kind,
    ...new Array(count).fill(1500),
    ...new Array(count).fill(-1),
    ...TREE.kind,
  ]);
  return new FakeKernel((request) =>
    request.kind === "modules"
      ? {
          reply: {
            kind: "modules",
            names: TREE.names,
            kind_names: ["Model", "ModuleList", "Block", "Linear"],
          } as Said["reply"],
          values: new Float32Array(columns.buffer),
        }
      : done,
  );
}

async function tree() {
  const kernel = treeKernel();
  const lab = labWith(kernel);
  lab.receive("view", viewWith({}));
  render(<ModuleTree lab={lab} />);
  await waitFor(() => screen.getAllByRole("treeitem"));
  return kernel;
}

const items = () => screen.getAllByRole("treeitem").map((row) => row.getAttribute("aria-label")!);
const item = (name: string) => screen.getByRole("treeitem", { name });

describe("the module tree", () => {
  it("is a tree with levels, of which what is open says so", async () => {
    await tree();
    screen.getByRole("tree", { name: "Module tree" });
    expect(items()).toEqual([" Model", "h ModuleList", "head Linear"]);
    expect(item("Model").getAttribute("aria-expanded")).toBe("true");
    expect(item("h ModuleList").getAttribute("aria-expanded")).toBe("false");
    expect(item("head Linear").hasAttribute("aria-expanded")).toBe(false);
    expect(item("head Linear").getAttribute("aria-level")).toBe("2");
  });

  it("is walked by arrows: into, out of, and folded layers are opened", async () => {
    const user = userEvent.setup();
    await tree();
    await user.click(screen.getByRole("searchbox"));
    const focused = (name: string) => waitFor(() => expect(document.activeElement).toBe(item(name)));
    await user.keyboard("{ArrowDown}");
    await focused("Model");
    await user.keyboard("{ArrowDown}");
    await focused("h ModuleList");
    await user.keyboard("{ArrowRight}");
    expect(items()).toEqual([" Model", "h ModuleList", "h.0 to h.4, 5 Block", "head Linear"]);
    await user.keyboard("{ArrowRight}");
    await focused("h.0 to h.4, 5 Block");
    await user.keyboard("{ArrowRight}");
    expect(items()).toHaveLength(9);
    await focused("h.0 to h.4, 5 Block");
    await user.keyboard("{ArrowLeft}");
    expect(items()).toHaveLength(4);
    await user.keyboard("{ArrowRight}");
    await user.keyboard("{ArrowRight}");
    await focused("0 Block");
    await user.keyboard("{ArrowLeft}");
    await focused("h ModuleList");
    await user.keyboard("{ArrowLeft}");
    expect(items()).toHaveLength(3);
  });

  it("shows the module that is chosen by Enter or click", async () => {
    const user = userEvent.setup();
    const kernel = await tree();
    await user.click(item("head Linear"));
    await user.keyboard("{ArrowUp}");
    await waitFor(() => expect(document.activeElement).toBe(item("h ModuleList")));
    await user.keyboard("{Enter}");
    expect(kernel.actions).toEqual([
      { do: "show_module", module: "head" },
      { do: "show_module", module: "h" },
    ]);
  });

  it("is filtered, and says when nothing is left", async () => {
    const user = userEvent.setup();
    await tree();
    await user.type(screen.getByRole("searchbox"), "block");
    expect(items()).toHaveLength(7);
    await user.clear(screen.getByRole("searchbox"));
    await user.type(screen.getByRole("searchbox"), "xyz");
    expect(screen.getByRole("tree").textContent).toContain("No module has “xyz” in it.");
    await user.keyboard("{Escape}");
    expect(items()).toHaveLength(3);
  });

  it("that the kernel cannot tell says why", async () => {
    const failure = { message: "The model is gone.", kind: "LabError", traceback: "" };
    const lab = labWith(new FakeKernel(() => ({ reply: { kind: "failed", failure } as Said["reply"] })));
    render(<ModuleTree lab={lab} />);
    await waitFor(() => screen.getByText("The model is gone."));
  });
});
