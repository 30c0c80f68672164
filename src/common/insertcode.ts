// How the Lab asks its host to insert a cell.

/** Name of the event by which a host is asked to insert a cell; its `detail` is `InsertCode`. */
export const INSERT_CODE = "nnsight-lab:insert-code";

export interface InsertCode {
  code: string;
}

/** Asks the host to insert a cell; whether it did. It says so by `preventDefault()`. */
export function requestInsertion(near: Element, code: string): boolean {
  const event = new CustomEvent<InsertCode>(INSERT_CODE, {
    detail: { code },
    bubbles: true,
    composed: true,
    cancelable: true,
  });
  return !near.dispatchEvent(event);
}
