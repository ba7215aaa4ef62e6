/** Returns an object with a field set, or removed if the value is undefined. */
export function withField(object: Record<string, unknown>, name: string, value: unknown): Record<string, unknown> {
  const { [name]: _, ...rest } = object;
  return value === undefined ? rest : { ...object, [name]: value };
}
