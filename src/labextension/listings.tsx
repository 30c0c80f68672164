// Listings in the main area, one tab a notebook, attached to the notebook's kernel. Without the kernel the last listing
// stays, to be read.
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import { useEffect, useState } from "preact/hooks";
import { copyText } from "../common/clipboard";
import { Reader } from "../common/reader";
import { useRedraw } from "../common/useredraw";
import type { AskSnippet, ListingView, OperationView } from "../common/wire";
import type { Conversation } from "./conversation";
import { conversationOf } from "./conversations";
import { Page } from "./page";
import { icon } from "./tokens";

/** Puts code into a cell of the notebook below the active one. */
export type Insert = (panel: NotebookPanel, code: string) => Promise<void>;

export class ListingPage extends Page {
  #model: string;
  #module: string;

  constructor(
    readonly notebook: NotebookPanel,
    private readonly words: TranslationBundle,
    private readonly insert: Insert,
    model: string,
    module: string,
  ) {
    super();
    this.#model = model;
    this.#module = module;
    this.title.icon = icon;
    this.#name();
  }

  show_(model: string, module: string): void {
    this.#model = model;
    this.#module = module;
    this.#name();
    this.update();
  }

  #name(): void {
    const { label } = this.notebook.title;
    this.title.label = this.#module.split(".").slice(-2).join(".") || this.#model;
    this.title.caption = `${[this.#model, this.#module].filter(Boolean).join(".")} · ${label}`;
  }

  protected view() {
    return (
      <AttachedListing
        conversation={conversationOf(this.notebook)}
        words={this.words}
        model={this.#model}
        module={this.#module}
        onShow={(module) => this.show_(this.#model, module)}
        onInsert={(code) => this.insert(this.notebook, code)}
        near={this.node}
      />
    );
  }
}

export interface AttachedListingProps {
  conversation: Conversation;
  words: TranslationBundle;
  model: string;
  module: string;
  near: Element;
  onShow(module: string): void;
  onInsert(code: string): Promise<void>;
}

export function AttachedListing(props: AttachedListingProps) {
  const { conversation, words, model, module } = props;
  useRedraw(conversation);
  const [listing, setListing] = useState<ListingView | null>(null);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState("");
  const [said, setSaid] = useState("");
  const { connection, revision, busy } = conversation;
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the kernel was looked at.
  useEffect(() => {
    let wanted = true;
    if (conversation.state.state !== "ready") return;
    connection?.ask("listing_of", { kind: "listing", model, module, opened: [...opened] }).then(
      ({ reply }) => {
        if (!wanted) return;
        setListing(reply.listing);
        setProblem("");
      },
      (error: Error) => {
        if (wanted && error.name !== "RequestDropped") setProblem(error.message);
      },
    );
    return () => {
      wanted = false;
    };
  }, [connection, revision, model, module, opened]);
  const live = connection !== null && conversation.state.state === "ready";
  const code = async (purpose: AskSnippet["purpose"], site: string) => {
    if (connection === null) return;
    try {
      const { reply } = await connection.ask("code", { kind: "snippet", model, site, purpose });
      await props.onInsert(reply.code);
      setSaid(words.__("Inserted below"));
    } catch (error) {
      if ((error as Error).name !== "RequestDropped") setProblem((error as Error).message);
    }
  };
  const notice =
    problem ||
    (live
      ? busy
        ? words.__("The kernel is busy; this follows when it is done.")
        : ""
      : words.__("No kernel: this is the last listing."));
  return (
    <Reader
      model={model}
      listing={listing}
      notice={notice || said}
      opened={opened}
      canShow={() => live}
      canOpen={(operation) => live && operation.can_step_into}
      onShow={(next) => {
        setOpened(new Set());
        setSaid("");
        props.onShow(next);
      }}
      onOpen={(site) =>
        setOpened((old) => {
          const next = new Set(old);
          if (!next.delete(site)) next.add(site);
          return next;
        })
      }
      actions={(operation: OperationView | null) => {
        const site = operation?.site ?? module;
        return (
          <>
            {operation !== null && (
              <>
                <Action
                  name={words.__("Insert: read it")}
                  off={!live}
                  onClick={() => void code("capture", site)}
                />
                <Action
                  name={words.__("Insert: zero it")}
                  off={!live}
                  onClick={() => void code("zero", site)}
                />
              </>
            )}
            <Action
              name={words.__("Insert: open in the Lab")}
              off={!live}
              onClick={() => void code("lab", site)}
            />
            <Action
              name={words.__("Copy address")}
              off={false}
              onClick={() =>
                void copyText(site, props.near).then((copied) =>
                  setSaid(copied ? words.__("Copied") : words.__("This page may not copy.")),
                )
              }
            />
          </>
        );
      }}
    />
  );
}

function Action({ name, off, onClick }: { name: string; off: boolean; onClick(): void }) {
  return (
    <button type="button" class="nnsl-button" disabled={off} onClick={onClick}>
      {name}
    </button>
  );
}
