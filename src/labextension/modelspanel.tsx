// The models panel: the models of the current notebook's kernel with their module trees, or what to do to have some.
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import { useEffect, useState } from "preact/hooks";
import { ModuleTreeView } from "../common/moduletree";
import { type Tree, treeFrom } from "../common/treemodel";
import { useRedraw } from "../common/useredraw";
import type { ModelEntry } from "../common/wire";
import type { Conversation } from "./conversation";
import { conversationOf } from "./conversations";
import { Page } from "./page";
import { icon } from "./tokens";

export type OpenListing = (panel: NotebookPanel, model: string, module: string) => void;

export class ModelsPanel extends Page {
  constructor(
    private readonly notebooks: INotebookTracker,
    private readonly words: TranslationBundle,
    private readonly open: OpenListing | null,
  ) {
    super();
    this.id = "nnsight-lab-models";
    this.title.icon = icon;
    this.title.caption = words.__("Models");
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", words.__("Models"));
    notebooks.currentChanged.connect(() => this.update());
  }

  protected view() {
    const panel = this.notebooks.currentWidget;
    if (panel === null)
      return (
        <div class="nnsl-models">
          <p class="nnsl-dim">{this.words.__("Open a notebook to see the models in its kernel.")}</p>
        </div>
      );
    return (
      <Models
        key={panel.id}
        name={panel.title.label}
        conversation={conversationOf(panel)}
        words={this.words}
        onChoose={(model, module) => this.open?.(panel, model, module)}
      />
    );
  }
}

export interface ModelsProps {
  name: string;
  conversation: Conversation;
  words: TranslationBundle;
  onChoose(model: string, module: string): void;
}

export function Models({ conversation, words, onChoose }: ModelsProps) {
  useRedraw(conversation);
  const { state } = conversation;
  return (
    <div class="nnsl-models">
      {conversation.busy && (
        <p class="nnsl-dim" role="status">
          {words.__("The kernel is busy; this follows when it is done.")}
        </p>
      )}
      {state.state === "ready" ? (
        state.models.length === 0 ? (
          <Advice
            text={words.__("No model in this kernel yet. For example:")}
            code={"from nnsight_lab import demo\n\nmodel = demo.load()"}
          />
        ) : (
          state.models.map((entry) => (
            <ModelTree
              key={entry.name}
              entry={entry}
              conversation={conversation}
              onChoose={(module) => onChoose(entry.name, module)}
            />
          ))
        )
      ) : (
        <Absent conversation={conversation} words={words} />
      )}
    </div>
  );
}

function Absent({ conversation, words }: { conversation: Conversation; words: TranslationBundle }) {
  const { state } = conversation;
  switch (state.state) {
    case "none":
      return <p class="nnsl-dim">{words.__("This notebook has no kernel.")}</p>;
    case "starting":
      return <p class="nnsl-dim">{words.__("The kernel is starting …")}</p>;
    case "dead":
      return <p class="nnsl-problem">{words.__("The kernel has died. Restart it to go on.")}</p>;
    case "foreign":
      return <p class="nnsl-dim">{words.__("This kernel does not run Python.")}</p>;
    case "missing":
      return (
        <Advice
          text={words.__("nnsight-lab is not installed in this kernel's environment. In a cell:")}
          code="%pip install nnsight-lab"
        />
      );
    case "installed":
      return <Advice text={words.__("To see models here, import the package:")} code="import nnsight_lab" />;
    case "failed":
      return (
        <>
          <p class="nnsl-problem">{state.message}</p>
          <button type="button" class="nnsl-button" onClick={() => conversation.retry()}>
            {words.__("Try again")}
          </button>
        </>
      );
    case "ready":
      return null;
  }
}

function Advice({ text, code }: { text: string; code: string }) {
  return (
    <>
      <p class="nnsl-dim">{text}</p>
      <pre>{code}</pre>
    </>
  );
}

interface ModelTreeProps {
  entry: ModelEntry;
  conversation: Conversation;
  onChoose(module: string): void;
}

function ModelTree({ entry, conversation, onChoose }: ModelTreeProps) {
  const [found, setFound] = useState<{ tree: Tree | null; error: string }>({ tree: null, error: "" });
  const [current, setCurrent] = useState<string | null>(null);
  const { connection } = conversation;
  const { name, identity } = entry;
  const { module_count: count, loaded } = entry.facts;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another model of this name has another tree.
  useEffect(() => {
    let wanted = true;
    connection?.ask("modules", { kind: "modules_of", model: name }).then(
      ({ reply, buffer }) => {
        if (wanted && buffer !== null) setFound({ tree: treeFrom(reply, buffer), error: "" });
      },
      (error: Error) => {
        if (wanted && error.name !== "RequestDropped") setFound({ tree: null, error: error.message });
      },
    );
    return () => {
      wanted = false;
    };
  }, [connection, name, identity, count, loaded]);
  return (
    <ModuleTreeView
      tree={found.tree}
      error={found.error}
      waiting="…"
      current={current}
      modelKind={entry.facts.kind}
      title={name}
      onChoose={(module) => {
        setCurrent(module);
        onChoose(module);
      }}
    />
  );
}
