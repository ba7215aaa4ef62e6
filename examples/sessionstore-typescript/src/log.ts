// Log lines as the server reads them: one JSON object per line on standard error.

export type Fields = Record<string, unknown>;

function write(level: string, message: string, fields: Fields): void {
  const timestamp = new Date().toISOString().replace("Z", "000Z"); // the server requires six digits
  const line = { "@level": level, "@message": message, "@timestamp": timestamp, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

export const info = (message: string, fields: Fields = {}): void => write("info", message, fields);
export const warn = (message: string, fields: Fields = {}): void => write("warn", message, fields);
export const error = (message: string, fields: Fields = {}): void => write("error", message, fields);
