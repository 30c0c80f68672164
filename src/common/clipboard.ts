// Copies text. Frames without the permission have no `navigator.clipboard`, or one that refuses; there the old way is
// taken, by selecting the text in a field and asking the page to copy the selection.

/** Copies `text`; false where neither way works. `near` is an element of the page. */
export async function copyText(text: string, near: Element): Promise<boolean> {
  const clipboard = near.ownerDocument.defaultView?.navigator.clipboard;
  if (clipboard !== undefined) {
    try {
      await clipboard.writeText(text);
      return true;
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  }
  return copySelected(text, near);
}

function copySelected(text: string, near: Element): boolean {
  const page = near.ownerDocument;
  const before = (near.getRootNode() as Document | ShadowRoot).activeElement;
  const field = page.createElement("textarea");
  field.value = text;
  field.setAttribute("readonly", "");
  field.style.cssText = "position: fixed; top: 0; opacity: 0";
  near.append(field);
  field.select();
  const copied = page.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}
