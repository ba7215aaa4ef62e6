import { errorOf, send } from "../api/http";

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

/** Reads a view of an app. */
export async function readView(server: string, uri: string): Promise<ViewResource> {
  const path = uri === "primary" ? uri : encodeURIComponent(uri);
  const response = await send(`/v1/apps/${encodeURIComponent(server)}/resources/${path}`, { headers: { Accept: "application/json, text/html;q=0.5" } });
  if (!response.ok) throw await errorOf(response);
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) return { uri, text: await response.text(), meta: {} };
  const body = (await response.json()) as { uri: string; mimeType?: string; text: string; _meta?: { ui?: ViewMeta } };
  return { uri: body.uri, mimeType: body.mimeType, text: body.text, meta: body._meta?.ui ?? {} };
}
