// The anywidget module: `initialize` makes what all views of one widget share, `render` draws one view. Both return
// their clean-up.
import type { AnyModel } from "@anywidget/types";
import { render as draw, h } from "preact";
import { type Channel, Connection } from "../common/connection";
import { Lab, type LabState, TRAITS } from "../common/lab";
import { App } from "./app";

type Traits = Record<`_${keyof LabState}`, unknown>;
type Model = AnyModel<Traits>;

// Whether the kernel's end is there, hosts built on ipywidgets tell in two ways, and other hosts in none. A view that is
// made without a kernel carries this class. Later the model says that something has changed, with the view as `this`,
// whose model knows what; anywidget's own wrapper of the model does not let it through.
const DISCONNECTED = "jupyter-widgets-disconnected";

function channelOf(model: Model, el: HTMLElement): Channel {
  return {
    send: (content) => model.send(content),
    onMessage(listener) {
      const heard = (content: unknown, buffers: DataView[]) => listener(content, buffers);
      model.on("msg:custom", heard);
      return () => model.off("msg:custom", heard);
    },
    onClosed(listener) {
      function heard(this: { model?: { comm_live?: boolean } } | undefined) {
        if (this?.model?.comm_live === false) listener();
      }
      model.on("comm_live_update" as never, heard);
      if (el.classList.contains(DISCONNECTED)) listener();
      return () => model.off("comm_live_update" as never, heard);
    },
  };
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const connection = new Connection(channelOf(model, el));
  const lab = new Lab(connection);
  const stop = TRAITS.map((name) => {
    const heard = () => lab.receive(name, model.get(`_${name}`));
    model.on(`change:_${name}`, heard);
    heard();
    return () => model.off(`change:_${name}`, heard);
  });
  draw(h(App, { lab }), el);
  return () => {
    draw(null, el);
    for (const off of stop) off();
    connection.dispose();
  };
}

export default { render };
