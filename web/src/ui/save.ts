/** Downloads a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Downloads rows as lines of JSON. */
export function saveLines(name: string, rows: Iterable<unknown>): void {
  const lines = Array.from(rows, (row) => `${JSON.stringify(row)}\n`);
  saveFile(name, new Blob(lines, { type: "application/x-ndjson" }));
}
