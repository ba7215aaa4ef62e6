import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take, type App, type Schemas } from "../api/client";
import { ApiError } from "../api/http";
import { refresh } from "../api/refresh";
import { toast } from "../ui/Toast";

/** A setting that an app needs before it starts. */
export type Needed = Schemas["CredentialsRequired"]["details"]["missing"][number];

/** What is installed: a reference to it, or the file itself. */
type Source = Schemas["InstallRequest"] | Blob;

export interface Installation {
  busy: boolean;
  error: Error | null;
  /** The settings that the server reported as missing. */
  missing: Needed[] | null;
  /** The app's name, for the title. */
  label: string;
  begin: (label: string, source: Source) => void;
  withSettings: (env: Record<string, string>) => void;
  back: () => void;
}

/** Installs from a source. If settings are missing, it asks for them and tries again. */
export function useInstall(installed: (app: App) => void): Installation {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [missing, setMissing] = useState<Needed[] | null>(null);
  const [source, setSource] = useState<{ label: string; body: Source }>({ label: "", body: { name: "" } });

  const run = async (label: string, body: Source, env?: Record<string, string>) => {
    setBusy(true);
    setError(null);
    try {
      const app =
        body instanceof Blob
          ? await upload(body, env)
          : await take(api.POST("/v1/apps/install", { body: env ? { ...body, env: { ...body.env, ...env } } : body }));
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
    busy,
    error,
    missing,
    label: source.label,
    begin: (label, body) => void run(label, body),
    withSettings: (env) => void run(source.label, source.body, env),
    back: () => {
      setMissing(null);
      setError(null);
    },
  };
}

/** Uploads a file. The settings come first in the form. */
function upload(file: Blob, env: Record<string, string> = {}): Promise<App> {
  const form = new FormData();
  form.append("settings", JSON.stringify({ env }));
  form.append("file", file, "bundle.mcpb");
  return take(api.POST("/v1/apps/upload", { body: { file: "" }, bodySerializer: () => form }));
}

export function neededBy(error: unknown): Needed[] | null {
  if (!(error instanceof ApiError) || error.code !== "credentials_required") return null;
  return (error.details as { missing?: Needed[] } | undefined)?.missing ?? null;
}
