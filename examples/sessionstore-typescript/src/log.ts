// Log lines as the server reads them: one JSON object per line on standard error.

export type Fields = Record<string, unknown>;

function line(level: string, message: string, fields: Fields): void {
  const timestamp = new Date().toISOString().replace("Z", "000Z"); // six digits, or the server does not know the line
  process.stderr.write(`${JSON.stringify({ "@level": level, "@message": message, "@timestamp": timestamp, ...fields })}\n`);
}

export const info = (message: string, fields: Fields = {}): void => line("info", message, fields);
export const warn = (message: string, fields: Fields = {}): void => line("warn", message, fields);
export const error = (message: string, fields: Fields = {}): void => line("error", message, fields);
