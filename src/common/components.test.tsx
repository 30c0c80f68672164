// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import { useState } from "preact/hooks";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Listing, type ListingProps } from "./listing";
import { targetOf } from "./steps";
import { clicked, range, TokenStrip, type TokenStripProps } from "./tokens";
import type { ListingBlock, OperationView, StepView } from "./wire";

beforeAll(() => {
  // jsdom lays nothing out.
  Element.prototype.scrollIntoView = () => undefined;
});
afterEach(cleanup);

const operation = (label: string, line: number, fields: Partial<OperationView> = {}): OperationView => ({
  label,
  kind: "call",
  line,
  column: 4,
  end_line: line,
  end_column: 8,
  site: `mlp.source.${label}`,
  calls: 1,
  reason: "",
  summary: "[1,8,4] f32",
  tensors: [],
  module: "",
  can_step_into: false,
  ...fields,
});

const block = (fields: Partial<ListingBlock> = {}): ListingBlock => ({
  site: "mlp",
  title: "MLP.forward",
  filename: "",
  first_line: 1,
  rows: [
    [
      { kind: "keyword", text: "def" },
      { kind: "plain", text: " forward(self, x):" },
    ],
    [{ kind: "plain", text: "    h = self.fc(x)" }],
    [{ kind: "plain", text: "    return self.act(h)" }],
  ],
  operations: [
    operation("self_fc_0", 0),
    operation("self_act_0", 1),
    operation("return_0", 1, { kind: "return" }),
  ],
  variables: [{ name: "x", line: 0, column: 16, end_column: 17, target: targetOf("x") }],
  calls: 1,
  error: "",
  ...fields,
});

const zero = (site: string, enabled = true): StepView => ({
  step: { kind: "zero", site, enabled },
  title: "",
  where: "",
  error: "",
  report: null,
  base_positions: null,
  source_positions: null,
});

function listing(fields: Partial<Omit<ListingProps, "onSelect" | "onPeek">> = {}, blocks = [block()]) {
  const props = {
    listing: { module: "mlp", blocks },
    selection: null,
    steps: [],
    everything: false,
    disabled: false,
    onSelect: vi.fn<ListingProps["onSelect"]>(),
    onPeek: vi.fn<ListingProps["onPeek"]>(),
    ...fields,
  };
  return { ...render(<Listing {...props} />), props };
}

const names = () => screen.getAllByRole("button").map((chip) => chip.getAttribute("aria-label"));

describe("the listing", () => {
  it("is a group with a button for each call, and for others when all are wanted", () => {
    listing();
    expect(screen.getByRole("group", { name: "Operations of MLP.forward" })).toBeTruthy();
    expect(names()).toEqual(["self_fc_0", "self_act_0"]);
    cleanup();
    listing({ everything: true });
    expect(names()).toEqual(["self_fc_0", "self_act_0", "return_0"]);
  });

  it("shows the code as it is", () => {
    const { container } = listing();
    expect([...container.querySelectorAll("code")].map((row) => row.textContent)).toEqual([
      "def forward(self, x):",
      "    h = self.fc(x)",
      "    return self.act(h)",
    ]);
  });

  it("has one tab stop, which arrows, Home and End move", async () => {
    const user = userEvent.setup();
    const { container } = listing({ everything: true });
    const stops = () => [...container.querySelectorAll('[tabindex="0"]')].map((chip) => chip.textContent);
    expect(stops()).toEqual(["self_fc_0"]);
    await user.tab();
    const focused = () => document.activeElement?.textContent;
    expect(focused()).toBe("self_fc_0");
    for (const [key, name] of [
      ["{ArrowDown}", "self_act_0"],
      ["{ArrowRight}", "return_0"],
      ["{ArrowDown}", "return_0"],
      ["{Home}", "self_fc_0"],
      ["{ArrowUp}", "self_fc_0"],
      ["{End}", "return_0"],
      ["{ArrowLeft}", "self_act_0"],
    ] as const) {
      await user.keyboard(key);
      expect(focused()).toBe(name);
      expect(stops()).toEqual([name]);
    }
    await user.tab();
    expect(document.activeElement).toBe(document.body);
  });

  it("begins at the selected chip, and says which that is", () => {
    const { container } = listing({ selection: targetOf("mlp.source.self_act_0") });
    expect(screen.getByRole("button", { pressed: true }).textContent).toBe("self_act_0");
    expect(container.querySelector('[tabindex="0"]')!.textContent).toBe("self_act_0");
  });

  it("selects by click, Enter and space, and not while it is off", async () => {
    const user = userEvent.setup();
    const { props } = listing();
    await user.click(screen.getByRole("button", { name: "self_act_0" }));
    await user.keyboard("{Home}{Enter} ");
    expect(props.onSelect.mock.calls.map(([chosen]) => chosen.label)).toEqual([
      "self_act_0",
      "self_fc_0",
      "self_fc_0",
    ]);
    cleanup();
    const off = listing({ disabled: true });
    const chip = screen.getByRole("button", { name: "self_act_0" });
    expect(chip.getAttribute("aria-disabled")).toBe("true");
    await user.click(chip);
    expect(off.props.onSelect).not.toHaveBeenCalled();
  });

  it("says in words what is edited, what is switched off, and what was not reached", () => {
    const steps = [zero("mlp.source.self_fc_0"), zero("mlp.source.self_act_0", false)];
    const operations = [
      operation("self_fc_0", 0),
      operation("self_act_0", 1, { calls: 0, reason: "the branch was not taken", summary: "" }),
    ];
    const { container } = listing({ steps }, [block({ operations })]);
    expect(names()).toEqual(["self_fc_0, zero", "self_act_0, zero switched off, not reached"]);
    expect(screen.getByRole("button", { name: /self_act_0/ }).title).toContain("the branch was not taken");
    expect(container.textContent).toContain("not reached");
  });

  it("lets values be peeked at: chips and the variables of the code", () => {
    const { container, props } = listing();
    const code = container.querySelector("code span[data-peek]")!;
    expect(code.textContent).toBe("x");
    fireEvent.pointerOver(code);
    expect(props.onPeek.mock.lastCall![0]).toEqual(targetOf("x"));
    fireEvent.pointerOver(screen.getByRole("button", { name: "self_fc_0" }));
    expect(props.onPeek.mock.lastCall![0]).toEqual(targetOf("mlp.source.self_fc_0"));
    fireEvent.pointerOver(container.querySelector(".nnsl-line")!);
    expect(props.onPeek).toHaveBeenLastCalledWith(null, null);
  });

  it("has what is stepped into below its row, as a group of its own", () => {
    const inner = block({
      site: "mlp.source.self_act_0",
      title: "gelu",
      rows: [[{ kind: "plain", text: "def gelu(x):" }], [{ kind: "plain", text: "    return erf(x)" }]],
      operations: [operation("erf_0", 0, { site: "mlp.source.self_act_0.source.erf_0" })],
      variables: [],
    });
    const { container } = listing({}, [block(), inner]);
    const group = screen.getByRole("group", { name: "Inside gelu" });
    expect(group.querySelector("button")!.textContent).toBe("erf_0");
    const order = [...container.querySelectorAll("code")].map((row) => row.textContent);
    expect(order.slice(-2)).toEqual(["def gelu(x):", "    return erf(x)"]);
    expect(names()).toEqual(["self_fc_0", "self_act_0", "erf_0"]);
  });

  it("without source says why", () => {
    const { container } = listing({}, [block({ error: "It is written in C.", rows: [], operations: [] })]);
    expect(container.textContent).toBe("It is written in C.");
  });
});

const TOKENS = ["The", " Eiffel", " Tower", " is"].map((text, id) => ({ text, id }));

function Strip(props: Partial<TokenStripProps> & { told: number[][] }) {
  const [chosen, setChosen] = useState<readonly number[] | null>(props.chosen ?? null);
  return (
    <TokenStrip
      name="base"
      tokens={TOKENS}
      linked={null}
      kind={null}
      disabled={false}
      onLook={() => undefined}
      {...props}
      chosen={chosen}
      onChoose={(positions) => {
        props.told.push(positions);
        setChosen(positions.length === 0 ? null : positions);
      }}
    />
  );
}

const option = (position: number) => screen.getAllByRole("option")[position]!;
const selected = () => screen.queryAllByRole("option", { selected: true }).map((token) => token.textContent);

describe("tokens chosen", () => {
  it("are ranges either way", () => {
    expect(range(1, 3)).toEqual([1, 2, 3]);
    expect(range(3, 1)).toEqual([1, 2, 3]);
  });

  it("are one by a click, none by another, more with keys", () => {
    const plain = { shift: false, add: false };
    expect(clicked([], 2, null, plain)).toEqual([2]);
    expect(clicked([2], 2, 2, plain)).toEqual([]);
    expect(clicked([2, 3], 2, 2, plain)).toEqual([2]);
    expect(clicked([2], 0, 2, { shift: true, add: false })).toEqual([0, 1, 2]);
    expect(clicked([2], 0, 2, { shift: false, add: true })).toEqual([2, 0]);
    expect(clicked([2, 0], 2, 2, { shift: false, add: true })).toEqual([0]);
    expect(clicked([], 1, null, { shift: true, add: false })).toEqual([1]);
  });
});

describe("the strip of tokens", () => {
  it("is a list box with its tokens visible", () => {
    render(<Strip told={[]} chosen={[1]} unmatched={[3]} unmatchedReason="no counterpart" />);
    expect(screen.getByRole("listbox", { name: "base" }).getAttribute("aria-multiselectable")).toBe("true");
    expect(screen.getAllByRole("option").map((token) => token.textContent)).toEqual([
      "The",
      "␣Eiffel",
      "␣Tower",
      "␣is",
    ]);
    expect(selected()).toEqual(["␣Eiffel"]);
    expect(option(3).title).toContain("no counterpart");
    expect(option(2).getAttribute("aria-label")).toBe("␣Tower, position 2");
  });

  it("is chosen from by mouse: click, shift and control", async () => {
    const user = userEvent.setup();
    const told: number[][] = [];
    render(<Strip told={told} />);
    await user.click(option(1));
    await user.keyboard("{Shift>}");
    await user.click(option(3));
    await user.keyboard("{/Shift}{Control>}");
    await user.click(option(2));
    await user.keyboard("{/Control}");
    expect(told).toEqual([[1], [1, 2, 3], [1, 3]]);
  });

  it("is chosen from by dragging, once at its end", () => {
    const told: number[][] = [];
    render(<Strip told={told} />);
    fireEvent.pointerDown(option(0), { button: 0 });
    fireEvent.pointerMove(option(1));
    fireEvent.pointerMove(option(2));
    expect(selected()).toEqual(["The", "␣Eiffel", "␣Tower"]);
    fireEvent.pointerUp(option(2));
    fireEvent.click(option(2));
    expect(told).toEqual([[0, 1, 2]]);
  });

  it("is chosen from by keyboard, with one tab stop", async () => {
    const user = userEvent.setup();
    const told: number[][] = [];
    const { container } = render(<Strip told={told} />);
    await user.tab();
    await user.keyboard("{End}{Enter}{ArrowLeft} {Escape}");
    expect(told).toEqual([[3], [3, 2], []]);
    expect(container.querySelectorAll('[tabindex="0"]')).toHaveLength(1);
    await user.keyboard("{Home}{Shift>}{ArrowRight}{ArrowRight}{/Shift}");
    expect(selected()).toEqual(["The", "␣Eiffel", "␣Tower"]);
    expect(document.activeElement!.textContent).toBe("␣Tower");
  });

  it("extends a choice with shift from where the last choice was made", async () => {
    const user = userEvent.setup();
    const told: number[][] = [];
    render(<Strip told={told} />);
    await user.tab();
    await user.keyboard("{ArrowRight}{Enter}{Shift>}{ArrowRight}{ArrowRight}{/Shift}");
    expect(told).toEqual([[1], [1, 2], [1, 2, 3]]);
  });

  it("begins a new range at the cursor when it was moved without shift", async () => {
    const user = userEvent.setup();
    const told: number[][] = [];
    render(<Strip told={told} />);
    await user.tab();
    await user.keyboard("{Enter}{End}{Shift>}{ArrowLeft}{/Shift}");
    expect(told.at(-1)).toEqual([2, 3]);
  });

  it("only shows while it is off", async () => {
    const user = userEvent.setup();
    const told: number[][] = [];
    render(<Strip told={told} chosen={[1]} disabled />);
    await user.click(option(0));
    await user.keyboard("{Enter} {Escape}{Shift>}{ArrowRight}{/Shift}");
    expect(told).toEqual([]);
    expect(document.activeElement!.textContent).toBe("␣Eiffel");
  });
});
