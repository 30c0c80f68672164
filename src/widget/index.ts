// The anywidget module: `initialize` makes what all views of one widget share, `render` draws one view. Both return
// their clean-up.
import type { AnyModel } from "@anywidget/types";
import { render as draw, h } from "preact";
import { type Channel, Connection } from "../common/connection";
import { Lab, type LabState, TRAITS } from "../common/lab";
import { App } from "./app";

type Traits = Record<`_${keyof LabState}`, unknown>;
type Model = AnyModel<Traits>;

function channelOf(model: Model): Channel {
  return {
    send: (content) => model.send(content),
    onMessage(listener) {
      const heard = (content: unknown, buffers: DataView[]) => listener(content, buffers);
      model.on("msg:custom", heard);
      return () => model.off("msg:custom", heard);
    },
    onClosed(listener) {
      // Hosts built on ipywidgets tell here that the kernel's end has gone; others never call.
      const heard = () => {
        if ((model as unknown as { comm_live?: boolean }).comm_live === false) listener();
      };
      model.on("comm_live_update" as never, heard);
      return () => model.off("comm_live_update" as never, heard);
    },
  };
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const connection = new Connection(channelOf(model));
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
