// Saves something as a file, and the names of such files.

/** A name for a file: what it shows, in letters that every system takes, at most 100 of them. */
export function fileName(shows: string, extension: string): string {
  const plain = shows
    .replaceAll("→", "to")
    .replaceAll("−", "-")
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/-{2,}/g, "-")
    .slice(0, 100)
    .replace(/^[-.]+|[-.]+$/g, "");
  return `${plain || "nnsight-lab"}.${extension}`;
}

/** Have the browser save `content` under `name`. `near` is an element of the page. */
export function download(near: Element, content: Blob, name: string): void {
  const page = near.ownerDocument;
  const address = URL.createObjectURL(content);
  const link = page.createElement("a");
  link.href = address;
  link.download = name;
  link.style.display = "none";
  // Inside the widget, since some hosts only listen there.
  near.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
