import { identity, send } from "./http";

export const tokenKey = "ropewalk.token";
export const workspaceKey = "ropewalk.workspace";

identity.token = sessionStorage.getItem(tokenKey) ?? "";
/** Returns the workspace in the page's address, or "" if there is none. */
export const workspaceInAddress = () => decodeURIComponent(/^\/w\/([^/]+)/.exec(location.pathname)?.[1] ?? "");

identity.workspace = workspaceInAddress() || (localStorage.getItem(workspaceKey) ?? "");

/** The requests that every visit starts with. They are sent while the rest of the page is still loading, because this
 * module is a separate script (vite.config.ts). */
const begun = new Map<string, Promise<Response>>();
for (const path of ["/console/facts.json", "/v1/workspace"]) {
  const answer = send(path);
  answer.catch(() => undefined); // the user of the response handles the error
  begun.set(path, answer);
}

/** Returns the response to an early request the first time it is asked for. Otherwise it sends the request now. */
export function answerTo(request: Request | string): Promise<Response> {
  const path =
    typeof request === "string" ? request : request.method === "GET" ? request.url.slice(location.origin.length) : "";
  const answer = begun.get(path);
  begun.delete(path);
  return answer ?? send(request);
}
