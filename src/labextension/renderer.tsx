// Draws `application/vnd.nnsight-lab.source+json`: a listing in a cell's output, with or without a kernel.
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import { render } from "preact";
import { useState } from "preact/hooks";
import { ContractError, checked } from "../common/check";
import { copyText } from "../common/clipboard";
import { Reader } from "../common/reader";
import type { SourceBundle } from "../common/wire";
import { Themed } from "./page";

export const MIME = "application/vnd.nnsight-lab.source+json";

export class SourceRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly words: TranslationBundle) {
    super();
    this.addClass("nnsl-output");
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    let bundle: SourceBundle;
    try {
      bundle = checked("SourceBundle", model.data[MIME]);
    } catch (error) {
      if (!(error instanceof ContractError)) throw error;
      // Another version's listing: what every version's output has is its text.
      const text = document.createElement("pre");
      text.textContent = String(model.data["text/plain"] ?? error.message);
      this.node.replaceChildren(text);
      return;
    }
    render(
      <Themed>
        <SavedListing bundle={bundle} words={this.words} near={this.node} />
      </Themed>,
      this.node,
    );
  }

  override dispose(): void {
    if (this.isDisposed) return;
    render(null, this.node);
    super.dispose();
  }
}

export interface SavedListingProps {
  bundle: SourceBundle;
  words: TranslationBundle;
  near: Element;
}

export function SavedListing({ bundle, words, near }: SavedListingProps) {
  const [module, setModule] = useState(bundle.module);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [said, setSaid] = useState("");
  const listing = bundle.listings[module] ?? null;
  const sites = new Set(listing?.blocks.map(({ site }) => site));
  const copy = (text: string) =>
    void copyText(text, near).then((copied) =>
      setSaid(copied ? words.__("Copied") : words.__("This page may not copy.")),
    );
  return (
    <Reader
      model={bundle.model}
      listing={listing}
      notice={said}
      opened={opened}
      canShow={(path) => path in bundle.listings}
      canOpen={({ site }) => sites.has(site)}
      onShow={(path) => {
        setModule(path);
        setOpened(new Set());
        setSaid("");
      }}
      onOpen={(site) =>
        setOpened((old) => {
          const next = new Set(old);
          if (!next.delete(site)) next.add(site);
          return next;
        })
      }
      actions={(operation) => (
        <>
          {module !== bundle.module && (
            <button type="button" class="nnsl-button" onClick={() => setModule(bundle.module)}>
              {words.__("Back")}
            </button>
          )}
          <button type="button" class="nnsl-button" onClick={() => copy(operation?.site ?? module)}>
            {words.__("Copy address")}
          </button>
          <button type="button" class="nnsl-button" onClick={() => copy(bundle.lab)}>
            {words.__("Copy the line that opens the Lab")}
          </button>
        </>
      )}
    />
  );
}
