import { parseJson } from "./digits";

/** An error response of the API. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details?: unknown,
    readonly retryAfter?: number,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** Reports whether the server was unreachable. The same request may succeed later. */
export const isUnreachable = (error: unknown) =>
  error instanceof ApiError && (error.status === 0 || error.status >= 502);

/** The identity and workspace that every request uses. */
export const identity = {
  token: "",
  workspace: "",
  /** Called when a response is 401. */
  onUnauthenticated: () => {},
};

/** Sets the headers that the API needs, except those that are already set. */
export function identify({ headers }: Request): void {
  if (identity.token && !headers.has("Authorization")) headers.set("Authorization", `Bearer ${identity.token}`);
  if (identity.workspace && !headers.has("X-Workspace-Id")) headers.set("X-Workspace-Id", identity.workspace);
}

/** Like fetch, but with the headers that the API needs. A failed connection throws an ApiError with status 0. */
export async function send(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = input instanceof Request && !init ? input : new Request(input, init);
  identify(request);
  try {
    return await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw new ApiError(0, "offline", "The server cannot be reached.");
  }
}

function parsed(text: string): { error?: string; message?: string; details?: unknown } {
  try {
    return (parseJson(text) ?? {}) as object;
  } catch {
    return {};
  }
}

/** Converts an error response to an ApiError. */
export async function errorOf(response: Response): Promise<ApiError> {
  const retry = Number(response.headers.get("Retry-After")) || undefined;
  if (response.status === 401) {
    identity.onUnauthenticated();
    return new ApiError(401, "unauthenticated", "You are not logged in.");
  }
  const body = parsed(await response.text());
  const code = body.error ?? `http_${response.status}`;
  return new ApiError(response.status, code, body.message ?? code.replaceAll("_", " "), body.details, retry);
}
