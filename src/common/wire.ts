// Generated from wire.schema.json by `npm run wire`: do not edit.

export type Action =
  | ShowModule
  | Select
  | StepInto
  | StepOut
  | SetPrompts
  | SetScope
  | AddStep
  | ChangeStep
  | EnableStep
  | RemoveStep
  | ActivateStep
  | ClearSteps
  | DisableAll
  | SetMetric
  | Undo
  | Redo
  | Run
  | StartSweep
  | StartLens
  | TakeCell
  | Restore
  | Retry
  | Dismiss
  | Cancel;
export type AnyMetric = TopK | LogitDiff | Probability | KL | Rank;
export type AnyStep = Capture | Zero | Mean | Scale | Noise | Add | Replace | Patch;
export type PanelRequest = AskAlive | AskModulesOf | AskListing | AskSnippet | AskLab;
export type Reply =
  | Accepted
  | Done
  | Superseded
  | Failed
  | Modules
  | Picture
  | Table
  | Peek
  | SweepGrid
  | LensGrid
  | AnswerOf
  | Code
  | Alive
  | ListingOf
  | Told;
export type Request = Act | AskModules | AskTensor | AskTable | AskPeek | AskGrid | AskAnswer | AskCode;

export interface Wire {
  Accepted: Accepted;
  Act: Act;
  Action: Action;
  ActivateStep: ActivateStep;
  Add: Add;
  AddStep: AddStep;
  Alignment: Alignment;
  Alive: Alive;
  Answer: Answer;
  AnswerOf: AnswerOf;
  AnyMetric: AnyMetric;
  AnyStep: AnyStep;
  AskAlive: AskAlive;
  AskAnswer: AskAnswer;
  AskCode: AskCode;
  AskGrid: AskGrid;
  AskLab: AskLab;
  AskListing: AskListing;
  AskModules: AskModules;
  AskModulesOf: AskModulesOf;
  AskPeek: AskPeek;
  AskSnippet: AskSnippet;
  AskTable: AskTable;
  AskTensor: AskTensor;
  AxisView: AxisView;
  Cancel: Cancel;
  Capture: Capture;
  CapturedView: CapturedView;
  ChangeStep: ChangeStep;
  ClearSteps: ClearSteps;
  Code: Code;
  CodeView: CodeView;
  ColourRange: ColourRange;
  Counts: Counts;
  DisableAll: DisableAll;
  Dismiss: Dismiss;
  Done: Done;
  EnableStep: EnableStep;
  Failed: Failed;
  Failure: Failure;
  History: History;
  HistoryEntry: HistoryEntry;
  KL: KL;
  LensGrid: LensGrid;
  ListingBlock: ListingBlock;
  ListingOf: ListingOf;
  ListingView: ListingView;
  LogitDiff: LogitDiff;
  Mean: Mean;
  ModelEntry: ModelEntry;
  ModelFacts: ModelFacts;
  Modules: Modules;
  Noise: Noise;
  OperationView: OperationView;
  PanelRequest: PanelRequest;
  Patch: Patch;
  Peek: Peek;
  Picture: Picture;
  Probability: Probability;
  PromptView: PromptView;
  Rank: Rank;
  Redo: Redo;
  RemoveStep: RemoveStep;
  Replace: Replace;
  Reply: Reply;
  Request: Request;
  Restore: Restore;
  Retry: Retry;
  Run: Run;
  Scale: Scale;
  Scope: Scope;
  Select: Select;
  SetMetric: SetMetric;
  SetPrompts: SetPrompts;
  SetScope: SetScope;
  ShowModule: ShowModule;
  SiteReport: SiteReport;
  Slice: Slice;
  Snapshot: Snapshot;
  SourceBundle: SourceBundle;
  Span: Span;
  StartLens: StartLens;
  StartSweep: StartSweep;
  Statistics: Statistics;
  Status: Status;
  StepInto: StepInto;
  StepOut: StepOut;
  StepView: StepView;
  StoredTensor: StoredTensor;
  Superseded: Superseded;
  SweepGrid: SweepGrid;
  Table: Table;
  TakeCell: TakeCell;
  Target: Target;
  TensorFacts: TensorFacts;
  Token: Token;
  TokenRow: TokenRow;
  TokenText: TokenText;
  Told: Told;
  TopK: TopK;
  Undo: Undo;
  Variable: Variable;
  View: View;
  Window: Window;
  Zero: Zero;
}
export interface Accepted {
  id: string;
  kind: "accepted";
}
export interface Act {
  action:
    | ShowModule
    | Select
    | StepInto
    | StepOut
    | SetPrompts
    | SetScope
    | AddStep
    | ChangeStep
    | EnableStep
    | RemoveStep
    | ActivateStep
    | ClearSteps
    | DisableAll
    | SetMetric
    | Undo
    | Redo
    | Run
    | StartSweep
    | StartLens
    | TakeCell
    | Restore
    | Retry
    | Dismiss
    | Cancel;
  id: string;
  kind: "act";
}
export interface ShowModule {
  do: "show_module";
  module: string;
}
export interface Select {
  do: "select";
  target: Target | null;
}
export interface Target {
  argument: string | null;
  call: number | null;
  element: (number | string)[] | null;
  io: "input" | "output";
  site: string;
}
export interface StepInto {
  do: "step_into";
  site: string;
}
export interface StepOut {
  do: "step_out";
  site: string;
}
export interface SetPrompts {
  base: string | null;
  do: "set_prompts";
  source: string | null;
}
export interface SetScope {
  do: "set_scope";
  scope: Scope;
}
export interface Scope {
  from_positions: (number | string | Token)[] | null;
  heads: number[] | string | null;
  index: number[] | string | null;
  positions: (number | string | Token)[] | null;
}
export interface Token {
  occurrence?: number | null;
  text: string;
}
export interface AddStep {
  do: "add_step";
  step: Capture | Zero | Mean | Scale | Noise | Add | Replace | Patch;
}
export interface Capture {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  io?: "input" | "output";
  kind: "capture";
  site: string;
}
export interface Zero {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "zero";
  positions?: (number | string | Token)[] | null;
  site: string;
}
export interface Mean {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "mean";
  over?: "batch" | "positions";
  positions?: (number | string | Token)[] | null;
  site: string;
}
export interface Scale {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  factor: number;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "scale";
  positions?: (number | string | Token)[] | null;
  site: string;
}
export interface Noise {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "noise";
  positions?: (number | string | Token)[] | null;
  seed?: number;
  site: string;
  std: number;
}
export interface Add {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "add";
  positions?: (number | string | Token)[] | null;
  site: string;
  vector: number[] | StoredTensor;
}
export interface StoredTensor {
  file: string;
  name: string;
}
export interface Replace {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "replace";
  positions?: (number | string | Token)[] | null;
  site: string;
  value: number | unknown[] | StoredTensor;
}
export interface Patch {
  call?: number | null;
  element?: (number | string)[] | null;
  enabled?: boolean;
  from_positions?: (number | string | Token)[] | null;
  from_prompt?: "base" | "source";
  from_site?: string | null;
  generation_step?: number | null;
  heads?: number[] | string | null;
  index?: number[] | string | null;
  io?: "input" | "output";
  kind: "patch";
  positions?: (number | string | Token)[] | null;
  site: string;
}
export interface ChangeStep {
  do: "change_step";
  number: number;
  step: Capture | Zero | Mean | Scale | Noise | Add | Replace | Patch;
}
export interface EnableStep {
  do: "enable_step";
  enabled: boolean;
  number: number;
}
export interface RemoveStep {
  do: "remove_step";
  number: number;
}
export interface ActivateStep {
  do: "activate_step";
  number: number | null;
}
export interface ClearSteps {
  do: "clear_steps";
}
export interface DisableAll {
  do: "disable_all";
}
export interface SetMetric {
  do: "set_metric";
  metric: (TopK | LogitDiff | Probability | KL | Rank) | null;
}
export interface TopK {
  k?: number;
  kind: "top_k";
}
export interface LogitDiff {
  correct: number | string;
  kind: "logit_diff";
  wrong: number | string;
}
export interface Probability {
  kind: "probability";
  token: number | string;
}
export interface KL {
  kind: "kl";
}
export interface Rank {
  kind: "rank";
  token: number | string;
}
export interface Undo {
  do: "undo";
}
export interface Redo {
  do: "redo";
}
export interface Run {
  do: "run";
}
export interface StartSweep {
  do: "start_sweep";
  heads: boolean;
  positions: "each" | "own";
  sites: string;
  step: (Capture | Zero | Mean | Scale | Noise | Add | Replace | Patch) | null;
}
export interface StartLens {
  do: "start_lens";
  stream: "attention" | "mlp" | "residual";
}
export interface TakeCell {
  cell: number[];
  do: "take_cell";
  run: string;
}
export interface Restore {
  do: "restore";
  run: string;
}
export interface Retry {
  do: "retry";
}
export interface Dismiss {
  do: "dismiss";
}
export interface Cancel {
  do: "cancel";
  work: ("lens" | "load" | "run" | "sweep") | null;
}
export interface Alignment {
  message: string;
  source_positions: (number | null)[];
}
export interface Alive {
  id: string;
  kind: "alive";
  models: ModelEntry[];
}
export interface ModelEntry {
  facts: ModelFacts;
  identity: string;
  name: string;
}
export interface ModelFacts {
  device: string;
  dtype: string;
  heads: number | null;
  kind: string;
  layers: string;
  loaded: boolean;
  module_count: number;
  name: string;
  parameters: number;
  takes_text: boolean;
}
export interface Answer {
  captured: CapturedView[];
  edited: boolean;
  headline: string;
  kl: number | null;
  max_difference: number | null;
  notes: string[];
  reports: SiteReport[];
  rows: TokenRow[];
  run: string;
  seconds: number;
}
export interface CapturedView {
  label: string;
  target: Target;
  tensors: TensorFacts[];
}
export interface TensorFacts {
  dtype: string;
  element: (number | string)[];
  shape: number[];
}
export interface SiteReport {
  calls: number;
  change: number | null;
  device: string;
  dtype: string;
  entries: number;
  io: string;
  kind: string;
  message: string;
  outcome:
    "captured" | "changed" | "disabled" | "effect zero to rounding" | "never ran" | "no downstream effect";
  relative_change: number | null;
  shape: number[];
  site: string;
  step: number;
}
export interface TokenRow {
  clean_logit: number;
  clean_probability: number;
  clean_rank: number;
  edited_logit: number;
  edited_probability: number;
  edited_rank: number;
  token: string;
  token_id: number;
}
export interface AnswerOf {
  answer: Answer;
  id: string;
  kind: "answer_of";
}
export interface AskAlive {
  id: string;
  kind: "alive";
}
export interface AskAnswer {
  id: string;
  kind: "answer";
  run: string;
}
export interface AskCode {
  id: string;
  kind: "code";
  run: string;
}
export interface AskGrid {
  id: string;
  kind: "grid";
  run: string;
}
export interface AskLab {
  id: string;
  kind: "lab";
  to: "clear" | "code" | "run";
}
export interface AskListing {
  id: string;
  kind: "listing";
  model: string;
  module: string;
  opened: string[];
}
export interface AskModules {
  id: string;
  kind: "modules";
}
export interface AskModulesOf {
  id: string;
  kind: "modules_of";
  model: string;
}
export interface AskPeek {
  id: string;
  kind: "peek";
  target: Target;
}
export interface AskSnippet {
  id: string;
  kind: "snippet";
  model: string;
  purpose: "capture" | "lab" | "zero";
  site: string;
}
export interface AskTable {
  id: string;
  kind: "table";
  run: string;
  slice: Slice;
  target: Target;
  which: "clean" | "difference" | "edited";
}
export interface Slice {
  column_axis: number | null;
  index: number[];
  row_axis: number | null;
}
export interface AskTensor {
  height: number;
  id: string;
  kind: "tensor";
  pooling: "extreme" | "max" | "mean" | "min";
  run: string;
  slice: Slice;
  target: Target;
  trim: number | null;
  which: "clean" | "difference" | "edited";
  width: number;
  window: Window | null;
}
export interface Window {
  column: number;
  column_end: number;
  row: number;
  row_end: number;
}
export interface AxisView {
  labels: string[];
  name: string;
  size: number;
}
export interface Code {
  code: string;
  id: string;
  kind: "code";
}
export interface CodeView {
  code: string;
  error: string;
}
export interface ColourRange {
  beyond_high: number;
  beyond_low: number;
  high: number;
  largest: number;
  low: number;
  smallest: number;
}
export interface Counts {
  nan: number;
  negative_infinity: number;
  positive_infinity: number;
}
export interface Done {
  id: string;
  kind: "done";
  revision: number;
}
export interface Failed {
  failure: Failure;
  id: string;
  kind: "failed";
}
export interface Failure {
  kind: string;
  message: string;
  traceback: string;
}
export interface History {
  entries: HistoryEntry[];
}
export interface HistoryEntry {
  complete: boolean;
  detail: string;
  kind: "lens" | "run" | "sweep";
  run: string;
  title: string;
}
export interface LensGrid {
  id: string;
  kind: "lens_grid";
  run: string;
  seconds: number;
  sites: string[];
  title: string;
  tokens: string[];
  top: string[][];
}
export interface ListingBlock {
  calls: number | null;
  error: string;
  filename: string;
  first_line: number;
  operations: OperationView[];
  rows: Span[][];
  site: string;
  title: string;
  variables: Variable[];
}
export interface OperationView {
  calls: number | null;
  can_step_into: boolean;
  column: number;
  end_column: number;
  end_line: number;
  kind: "call" | "name" | "operator" | "return";
  label: string;
  line: number;
  module: string;
  reason: string;
  site: string;
  summary: string;
  tensors: TensorFacts[];
}
export interface Span {
  kind:
    | "builtin"
    | "comment"
    | "function"
    | "keyword"
    | "name"
    | "number"
    | "operator"
    | "plain"
    | "self"
    | "string";
  text: string;
}
export interface Variable {
  column: number;
  end_column: number;
  line: number;
  name: string;
  target: Target;
}
export interface ListingOf {
  id: string;
  kind: "listing_of";
  listing: ListingView;
}
export interface ListingView {
  blocks: ListingBlock[];
  module: string;
}
export interface Modules {
  id: string;
  kind: "modules";
  kind_names: string[];
  names: string[];
}
export interface Peek {
  calls: number;
  colours: ColourRange | null;
  columns: number;
  id: string;
  kind: "peek";
  label: string;
  odd: Counts;
  reason: string;
  rows: number;
  statistics: Statistics | null;
  structure: string;
  target: Target;
  tensors: TensorFacts[];
}
export interface Statistics {
  largest: number | null;
  mean: number | null;
  norm: number | null;
  smallest: number | null;
  std: number | null;
}
export interface Picture {
  axes: AxisView[];
  colours: ColourRange;
  columns: number;
  dtype: string;
  id: string;
  kind: "picture";
  label: string;
  odd: Counts;
  pooling: "extreme" | "max" | "mean" | "min";
  rows: number;
  run: string;
  shape: number[];
  slice: Slice;
  target: Target;
  which: "clean" | "difference" | "edited";
  window: Window;
}
export interface PromptView {
  error: string;
  length: number | null;
  text: string | null;
  tokens: TokenText[];
}
export interface TokenText {
  id: number;
  text: string;
}
export interface Superseded {
  id: string;
  kind: "superseded";
}
export interface Table {
  csv: string;
  id: string;
  kind: "table";
  name: string;
}
export interface SweepGrid {
  axes: AxisView[];
  baseline: number | null;
  colours: ColourRange;
  done: number;
  id: string;
  kind: "sweep_grid";
  metric: string;
  notes: string[];
  run: string;
  seconds: number;
  source_value: number | null;
  title: string;
  total: number;
}
export interface Told {
  code: string;
  id: string;
  kind: "told";
  message: string;
}
export interface Snapshot {
  columns: number;
  data: string;
  high: number;
  label: string;
  low: number;
  rows: number;
  shape: number[];
  target: Target;
}
export interface SourceBundle {
  lab: string;
  listings: {
    [k: string]: ListingView;
  };
  model: string;
  module: string;
  version: number;
}
export interface Status {
  blocked: boolean;
  done: number;
  failed: ("lens" | "load" | "run" | "sweep") | null;
  failure: Failure | null;
  stale: boolean;
  total: number;
  unit: string;
  waiting: ("lens" | "load" | "run" | "sweep")[];
  work: ("lens" | "load" | "run" | "sweep") | null;
}
export interface StepView {
  base_positions: number[] | null;
  error: string;
  report: SiteReport | null;
  source_positions: number[] | null;
  step: Capture | Zero | Mean | Scale | Noise | Add | Replace | Patch;
  title: string;
  where: string;
}
export interface View {
  active: number | null;
  alignment: Alignment;
  base: PromptView;
  can_redo: boolean;
  can_undo: boolean;
  metric: (TopK | LogitDiff | Probability | KL | Rank) | null;
  model: ModelFacts | null;
  module: string;
  opened: string[];
  revision: number;
  scope: Scope;
  selection: Target | null;
  shown_answer: string | null;
  shown_lens: string | null;
  shown_sweep: string | null;
  source: PromptView;
  steps: StepView[];
  version: number;
}
