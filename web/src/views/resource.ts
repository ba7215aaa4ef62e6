import { ApiError, errorOf, send } from "../api/http";

/** What a view says it needs: _meta.ui of its resource. */
export interface ViewMeta {
  csp?: { connectDomains?: string[]; resourceDomains?: string[]; frameDomains?: string[]; baseUriDomains?: string[] };
  permissions?: Partial<Record<"camera" | "microphone" | "geolocation" | "clipboardWrite", object>>;
  prefersBorder?: boolean;
}

export interface ViewResource {
  uri: string;
  mimeType?: string;
  text: string;
  meta: ViewMeta;
}

/**
 * Reads a view of an app. A URI may name the app (ropewalk://app/uri, ui://app/path) where its own name for
 * the view is asked for.
 */
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
  const path = uri === "primary" ? uri : encodeURIComponent(uri);
  const response = await send(`/v1/apps/${encodeURIComponent(server)}/resources/${path}`, { headers: { Accept: "application/json, text/html;q=0.5" } });
  if (!response.ok) throw await errorOf(response);
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) return { uri, text: await response.text(), meta: {} };
  const body = (await response.json()) as { uri: string; mimeType?: string; text: string; _meta?: { ui?: ViewMeta } };
  return { uri: body.uri, mimeType: body.mimeType, text: body.text, meta: body._meta?.ui ?? {} };
}
