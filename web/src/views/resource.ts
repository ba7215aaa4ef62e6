import { api } from "../api/client";
import { parseJson } from "../api/digits";
import { ApiError } from "../api/http";

const permissions = ["camera", "microphone", "geolocation", "clipboardWrite"] as const;

/** The settings and permissions that a view asks for, in _meta.ui of its resource. */
export interface ViewMeta {
  csp?: { connectDomains?: string[]; resourceDomains?: string[]; frameDomains?: string[]; baseUriDomains?: string[] };
  permissions?: Partial<Record<(typeof permissions)[number], object>>;
  prefersBorder?: boolean;
}

export interface ViewResource {
  uri: string;
  mimeType?: string;
  text: string;
  meta: ViewMeta;
}

/** Reads a view of an app. The URI may contain the app's name (ropewalk://app/uri, ui://app/path). The app itself
 * does not know this name. */
export async function readView(server: string, named: string): Promise<ViewResource> {
  const uri = named.replace(/^ropewalk:\/\/[^/]+\/(?=ui:\/\/)/, "");
  const own = uri.startsWith(`ui://${server}/`) ? `ui://${uri.slice(server.length + 6)}` : "";
  try {
    return await read(server, uri);
  } catch (error) {
    if (own && error instanceof ApiError && error.code === "resource_not_found") return await read(server, own);
    throw error;
  }
}

async function read(server: string, uri: string): Promise<ViewResource> {
  const params = { path: { name: server, path: uri } };
  const headers = { Accept: "application/json, text/html;q=0.5" };
  const { data = "", response } = await api.GET("/v1/apps/{name}/resources/{path}", {
    params,
    headers,
    parseAs: "text",
  });
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) return { uri, text: data, meta: {} };
  const body = parseJson(data) as { uri: string; mimeType?: string; text: string; _meta?: { ui?: ViewMeta } };
  return { uri: body.uri, mimeType: body.mimeType, text: body.text, meta: known(body._meta?.ui ?? {}) };
}

/** Drops the permissions that MCP Apps doesn't define: the names end up in the frame's allow attribute. */
function known(meta: ViewMeta): ViewMeta {
  const asked = meta.permissions ?? {};
  const kept = permissions.filter((name) => Object.hasOwn(asked, name)).map((name) => [name, asked[name]]);
  return { ...meta, permissions: Object.fromEntries(kept) as ViewMeta["permissions"] };
}
