// A widget manager over one kernel connection, which does what JupyterLab's does: it takes the comms that the kernel
// opens, asks the kernel for its widgets whenever the connection is made, and marks every model dead at a restart.
// Without a kernel it shows saved state, as a notebook that is opened to be read.
import { shims, type WidgetModel, type WidgetView } from "@jupyter-widgets/base";
import { type IManagerState, ManagerBase } from "@jupyter-widgets/base-manager";
import type { Kernel } from "@jupyterlab/services";
import type { JSONObject } from "@lumino/coreutils";
import { Widget } from "@lumino/widgets";
import { exportOf } from "./modules";

type ModelClass = typeof WidgetModel;
type ViewClass = typeof WidgetView;

export class PageManager extends ManagerBase {
  #kernel: Kernel.IKernelConnection | null = null;
  #restoring: Promise<void> | null = null;

  /** Serve this kernel's widgets; resolves when those that it has already are here. */
  async connect(kernel: Kernel.IKernelConnection): Promise<void> {
    this.#kernel = kernel;
    // Messages that follow are kept back until the model is there to take them.
    kernel.registerCommTarget(this.comm_target_name, async (comm, message) => {
      await this.handle_comm_open(new shims.services.Comm(comm), message);
    });
    kernel.statusChanged.connect((_, status) => {
      if (status === "restarting") this.disconnect();
    });
    kernel.connectionStatusChanged.connect((_, status) => {
      if (status === "connected") void this.restore();
    });
    await this.restore();
  }

  /** Ask the kernel for its widgets. It answers when it is free. */
  restore(): Promise<void> {
    this.#restoring ??= this._loadFromKernel().finally(() => {
      this.#restoring = null;
    });
    return this.#restoring;
  }

  /** Add a view of a model to the page; returns what takes it away. */
  async show(id: string, into: HTMLElement): Promise<() => void> {
    const view = await this.create_view(await this.get_model(id));
    Widget.attach((view as unknown as { luminoWidget: Widget }).luminoWidget, into);
    return () => view.remove();
  }

  savedState(): Promise<IManagerState> {
    return this.get_state({ drop_defaults: true });
  }

  protected async loadClass(name: string, module: string, _version: string): Promise<ModelClass | ViewClass> {
    return (await exportOf(module, name)) as ModelClass | ViewClass;
  }

  protected async _create_comm(
    target: string,
    id?: string,
    data?: JSONObject,
    metadata?: JSONObject,
    buffers?: ArrayBuffer[] | ArrayBufferView[],
  ): Promise<shims.services.Comm> {
    if (this.#kernel === null) throw new Error("There is no kernel.");
    const comm = this.#kernel.createComm(target, id);
    if (data !== undefined || metadata !== undefined) comm.open(data, metadata, buffers as ArrayBuffer[]);
    return new shims.services.Comm(comm);
  }

  protected async _get_comm_info(): Promise<Record<string, unknown>> {
    if (this.#kernel === null) return {};
    const { content } = await this.#kernel.requestCommInfo({ target_name: this.comm_target_name });
    return content.status === "ok" ? content.comms : {};
  }
}
