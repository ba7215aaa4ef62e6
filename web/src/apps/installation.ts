import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take, type App, type Schemas } from "../api/client";
import { ApiError } from "../api/http";
import { refresh } from "../api/refresh";
import { toast } from "../ui/Toast";
import { allAnswered, askedBy, decided, type Answers, type Asked, type Decisions } from "./Questions";

/** A setting without which an app does not start. */
export type Needed = Schemas["CredentialsRequired"]["details"]["missing"][number];

/** The thing to install: a reference, or the file itself. */
type Source = Schemas["InstallRequest"] | Blob;

export interface Installation {
  busy: boolean;
  error: Error | null;
  /** The settings that the server reported as missing. */
  missing: Needed[] | null;
  /** The app's name for the title. */
  label: string;
  begin: (label: string, source: Source) => void;
  withSettings: (env: Record<string, string>) => void;
  /** The permissions that the app asks for, and the answers so far. */
  asked: Asked[] | null;
  answers: Answers;
  answer: (answers: Answers) => void;
  decide: () => void;
  /** The installed app that an uploaded file would replace. */
  replaceable: Replaceable | null;
  replace: () => void;
  back: () => void;
}

export interface Replaceable {
  name: string;
  installed: string;
  offered: string;
}

/** The decisions to send when an installation is retried. */
interface Given {
  env?: Record<string, string>;
  permissions: Decisions;
  replace?: boolean;
}

const nothing: Given = { permissions: {} };

/** Installs an app from a source. If settings or permissions are missing, it asks for them and retries. */
export function useInstall(installed: (app: App) => void): Installation {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [missing, setMissing] = useState<Needed[] | null>(null);
  const [asked, setAsked] = useState<Asked[] | null>(null);
  const [answers, setAnswers] = useState<Answers>({});
  const [source, setSource] = useState<{ label: string; body: Source; given: Given }>({
    label: "",
    body: { name: "" },
    given: nothing,
  });
  const [replaceable, setReplaceable] = useState<Replaceable | null>(null);

  const run = async (label: string, body: Source, given: Given) => {
    setBusy(true);
    setError(null);
    setReplaceable(null);
    const { env, permissions, replace = false } = given;
    try {
      const app =
        body instanceof Blob
          ? await upload(body, given)
          : await take(
              api.POST("/v1/apps/install", {
                body: { ...body, permissions, ...(env && { env: { ...body.env, ...env } }) },
              }),
            );
      toast(replace ? `${app.name} was updated to version ${app.version}.` : `${app.name} was installed.`);
      refresh(queries, ["apps", "tools", "health", "bootstrap"]);
      installed(app);
    } catch (problem) {
      const needed = neededBy(problem);
      const questions = askedBy(problem);
      const old = body instanceof Blob ? replaceableIn(problem) : null;
      if (needed && !env) setMissing(needed);
      else if (questions) {
        setMissing(null);
        setAnswers({});
        setAsked(questions);
      } else if (old) setReplaceable(old);
      else setError(problem as Error);
      setSource({ label, body, given });
    } finally {
      setBusy(false);
    }
  };
  const again = (more: Partial<Given>) => void run(source.label, source.body, { ...source.given, ...more });
  return {
    busy,
    error,
    missing,
    label: source.label,
    begin: (label, body) => void run(label, body, nothing),
    withSettings: (env) => again({ env }),
    asked,
    answers,
    answer: setAnswers,
    decide: () => {
      if (asked && allAnswered(asked, answers))
        again({ permissions: decided(source.given.permissions, asked, answers) });
    },
    replaceable,
    replace: () => again({ replace: true }),
    back: () => {
      setMissing(null);
      setAsked(null);
      setError(null);
      setReplaceable(null);
    },
  };
}

/** Replaces an uploaded app with a new version. */
export function useReplace(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (file: File) => upload(new Blob([file]), { replace: true }, name),
    onSuccess: (app) => toast(`${app.name} was updated to version ${app.version}.`),
    onSettled: () => refresh(queries, ["apps", "app", "health", "tools"]),
  });
}

/** Uploads a file. The settings come first in the form, because the server stops reading parts after the file. */
function upload(file: Blob, { env = {}, permissions, replace = false }: Partial<Given>, serverName = ""): Promise<App> {
  const form = new FormData();
  form.append("settings", JSON.stringify({ env, permissions, replace, serverName: serverName || undefined }));
  form.append("file", file, "bundle.mcpb");
  return take(api.POST("/v1/apps/upload", { body: { file: "" }, bodySerializer: () => form }));
}

function replaceableIn(error: unknown): Replaceable | null {
  if (!(error instanceof ApiError) || error.code !== "already_installed") return null;
  const details = error.details as Partial<Replaceable> | undefined;
  return details?.name && details.installed !== undefined && details.offered !== undefined
    ? (details as Replaceable)
    : null;
}

export function neededBy(error: unknown): Needed[] | null {
  if (!(error instanceof ApiError) || error.code !== "credentials_required") return null;
  return (error.details as { missing?: Needed[] } | undefined)?.missing ?? null;
}
