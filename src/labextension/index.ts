// The plugins of the JupyterLab extension. Each takes the others' services as optional, so that any can be disabled.
import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { ICommandPalette, MainAreaWidget } from "@jupyterlab/apputils";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { ITranslator } from "@jupyterlab/translation";
import { insertBelow } from "./cells";
import { Actions, IDS } from "./commands";
import { listenForCode } from "./insertcode";
import { ListingPage } from "./listings";
import { ModelsPanel } from "./modelspanel";
import { newNotebook } from "./newnotebook";
import { MIME, SourceRenderer } from "./renderer";
import { IListings, icon } from "./tokens";
import { wordsOf } from "./words";

const PANEL = "nnsight-lab:models-panel";
const LISTINGS = "nnsight-lab:listings";
const RENDERER = "nnsight-lab:renderer";
const COMMANDS = "nnsight-lab:commands";
const INSERT = "nnsight-lab:insert-code";

const listings: JupyterFrontEndPlugin<IListings> = {
  id: LISTINGS,
  description: "Listings of modules, in tabs beside the notebook and attached to its kernel.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator],
  provides: IListings,
  activate(app: JupyterFrontEnd, _: INotebookTracker, translator: ITranslator | null): IListings {
    const words = wordsOf(translator);
    const tabs = new Map<NotebookPanel, MainAreaWidget<ListingPage>>();
    return {
      open(panel, model, module) {
        let tab = tabs.get(panel);
        if (tab === undefined || tab.isDisposed) {
          const page = new ListingPage(panel, words, insertBelow, model, module);
          tab = new MainAreaWidget({ content: page });
          tab.id = `nnsight-lab-listing-${panel.id}`;
          tab.title.closable = true;
          tabs.set(panel, tab);
          tab.disposed.connect(() => tabs.delete(panel));
          panel.disposed.connect(() => tab?.dispose());
          app.shell.add(tab, "main", { mode: "split-right", ref: panel.id, activate: false });
        } else {
          tab.content.show_(model, module);
        }
        app.shell.activateById(tab.id);
      },
    };
  },
};

const modelsPanel: JupyterFrontEndPlugin<void> = {
  id: PANEL,
  description: "The models of the current notebook's kernel, in the left sidebar.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [IListings, ITranslator, ILayoutRestorer, ILabShell, ICommandPalette],
  activate(
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    shown: IListings | null,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    shell: ILabShell | null,
    palette: ICommandPalette | null,
  ) {
    const words = wordsOf(translator);
    const panel = new ModelsPanel(notebooks, words, shown === null ? null : shown.open.bind(shown));
    app.shell.add(panel, "left", { rank: 850 });
    if (shell !== null) restorer?.add(panel, panel.id);
    app.commands.addCommand(IDS.showModels, {
      label: words.__("Show Models"),
      caption: words.__("The models of the current notebook's kernel"),
      execute: () => app.shell.activateById(panel.id),
    });
    palette?.addItem({ command: IDS.showModels, category: "nnsight-lab" });
  },
};

const renderer: JupyterFrontEndPlugin<void> = {
  id: RENDERER,
  description: `Draws ${MIME}: listings in the output of cells.`,
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ITranslator],
  activate(_: JupyterFrontEnd, registry: IRenderMimeRegistry, translator: ITranslator | null) {
    const words = wordsOf(translator);
    // Before HTML, which every listing has as well.
    registry.addFactory(
      { safe: true, mimeTypes: [MIME], createRenderer: () => new SourceRenderer(words) },
      40,
    );
  },
};

const commands: JupyterFrontEndPlugin<void> = {
  id: COMMANDS,
  description: "Commands for the Lab in palette, launcher, toolbar, context menu and by key.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILauncher, ISettingRegistry, ITranslator],
  async activate(
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    settings: ISettingRegistry | null,
    translator: ITranslator | null,
  ) {
    const words = wordsOf(translator);
    const found = settings === null ? null : await settings.load(COMMANDS);
    const runs = () => found?.get("runInserted").composite !== false;
    const actions = new Actions(notebooks, words, runs);
    const isEnabled = () => notebooks.currentWidget !== null;
    app.commands.addCommand(IDS.openLab, {
      label: words.__("Open the Lab for a Model"),
      caption: words.__("Insert a cell that opens the Lab"),
      icon,
      isEnabled,
      execute: () => actions.openLab(),
    });
    app.commands.addCommand(IDS.insertCode, {
      label: words.__("Insert the Lab's Code Below"),
      isEnabled,
      execute: () => actions.insertCode(),
    });
    app.commands.addCommand(IDS.runAgain, {
      label: words.__("Run the Lab's Steps Again"),
      isEnabled,
      execute: () => actions.lab("run"),
    });
    app.commands.addCommand(IDS.clearSteps, {
      label: words.__("Clear the Lab's Steps"),
      isEnabled,
      execute: () => actions.lab("clear"),
    });
    app.commands.addCommand(IDS.newNotebook, {
      label: ({ isPalette }) => (isPalette ? words.__("New Notebook with the Lab") : words.__("nnsight-lab")),
      caption: words.__("A notebook with the Lab on the embedded model"),
      icon,
      execute: () => newNotebook(app.commands, app.serviceManager.kernelspecs),
    });
    for (const command of Object.values(IDS))
      if (command !== IDS.showModels)
        palette?.addItem({
          command,
          category: "nnsight-lab",
          args: command === IDS.newNotebook ? { isPalette: true } : {},
        });
    launcher?.add({ command: IDS.newNotebook, category: "Notebook", rank: 100 });
  },
};

const insertCode: JupyterFrontEndPlugin<void> = {
  id: INSERT,
  description: "Puts the Lab's code into a cell below the Lab when its page asks for that.",
  autoStart: true,
  requires: [INotebookTracker],
  activate(_: JupyterFrontEnd, notebooks: INotebookTracker) {
    listenForCode(document, notebooks);
  },
};

export default [listings, modelsPanel, renderer, commands, insertCode];
