import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { App } from "../api/client";
import { ApiError, request } from "../api/http";
import { refresh } from "../api/refresh";
import { toast } from "../ui/Toast";

/** A setting that an app needs before it starts. */
export interface Needed {
  name: string;
  title: string;
  description: string;
  sensitive: boolean;
}

export interface Installation {
  busy: boolean;
  error: Error | null;
  /** What the app needs to know, once the server has said so. */
  missing: Needed[] | null;
  /** Which app it is about, for the title. */
  label: string;
  begin: (label: string, source: Record<string, unknown> | Blob) => void;
  withSettings: (env: Record<string, string>) => void;
  back: () => void;
}

/** Installs from a source; when settings are missing, a second time with them. */
export function useInstall(installed: (app: App) => void): Installation {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [missing, setMissing] = useState<Needed[] | null>(null);
  const [source, setSource] = useState<{ label: string; body: Record<string, unknown> | Blob }>({ label: "", body: {} });

  const run = async (label: string, body: Record<string, unknown> | Blob, env?: Record<string, string>) => {
    setBusy(true);
    setError(null);
    try {
      const app = body instanceof Blob
        ? await request<App>("POST", "/v1/apps/upload", { body: env ? uploadForm(body, env) : body })
        : await request<App>("POST", "/v1/apps/install", { body: env ? { ...body, env: { ...(body.env as object | undefined), ...env } } : body });
      toast(`${app.name} is installed.`);
      refresh(queries, ["apps", "tools", "health", "bootstrap"]);
      installed(app);
    } catch (problem) {
      const needed = neededBy(problem);
      if (needed && !env) setMissing(needed);
      else setError(problem as Error);
      setSource({ label, body });
    } finally {
      setBusy(false);
    }
  };
  return {
    busy, error, missing, label: source.label,
    begin: (label, body) => void run(label, body),
    withSettings: (env) => void run(source.label, source.body, env),
    back: () => {
      setMissing(null);
      setError(null);
    },
  };
}

/** The form of an upload with settings: they must come before the file. */
function uploadForm(file: Blob, env: Record<string, string>): FormData {
  const form = new FormData();
  form.append("settings", JSON.stringify({ env }));
  form.append("file", file, "bundle.mcpb");
  return form;
}

export function neededBy(error: unknown): Needed[] | null {
  if (!(error instanceof ApiError) || error.code !== "credentials_required") return null;
  return (error.details as { missing?: Needed[] } | undefined)?.missing ?? null;
}
