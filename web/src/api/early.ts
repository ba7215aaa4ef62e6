import { identity, send } from "./http";

export const tokenKey = "ropewalk.token";
export const workspaceKey = "ropewalk.workspace";

identity.token = sessionStorage.getItem(tokenKey) ?? "";
/** The workspace in the address of the page, "" where it names none. */
export const workspaceInAddress = () => decodeURIComponent(/^\/w\/([^/]+)/.exec(location.pathname)?.[1] ?? "");

identity.workspace = workspaceInAddress() || (localStorage.getItem(workspaceKey) ?? "");

/**
 * What every visit asks for first. It is asked for while the rest of the page is loaded, and answered meanwhile: this module is a script
 * of its own (vite.config.ts).
 */
const begun = new Map<string, Promise<Response>>();
for (const path of ["/console/facts.json", "/v1/workspace"]) {
  const answer = send(path);
  answer.catch(() => undefined); // whoever asks for it sees the failure
  begun.set(path, answer);
}

/** The answer that was asked for early, once, or that of a request that is sent now. */
export function answerTo(request: Request | string): Promise<Response> {
  const path =
    typeof request === "string" ? request : request.method === "GET" ? request.url.slice(location.origin.length) : "";
  const answer = begun.get(path);
  begun.delete(path);
  return answer ?? send(request);
}
