/** Downloads rows as lines of JSON. */
export function saveLines(name: string, rows: Iterable<unknown>): void {
  const lines = Array.from(rows, (row) => `${JSON.stringify(row)}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
