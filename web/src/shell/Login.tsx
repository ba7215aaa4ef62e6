import { ArrowRight } from "lucide-react";
import { useState } from "react";
import { api, take } from "../api/client";
import { ApiError } from "../api/http";
import { rememberToken, type Facts } from "../api/session";
import { Brand } from "../ui/Brand";
import { Button } from "../ui/Button";
import { Field, Input } from "../ui/Field";
import { Notice } from "../ui/Surface";
import css from "./shell.module.css";

// Read now, because the router replaces the page's address before the first render.
const failed = new URLSearchParams(location.search).has("error");

/** Shows the login page, for the identity provider, the API key or a token. */
export function Login({ facts, onDone }: { facts: Facts; onDone: () => void }) {
  const browserLogin = facts.browserLogin ?? facts.login; // servers of the previous version only have login
  return (
    <main className={css.center}>
      <div className={css.login}>
        <header>
          <Brand size={44} />
          <h1>Log in to Ropewalk</h1>
          <p>Apps and their tools, in one place.</p>
        </header>
        {failed && (
          <Notice tone="bad">
            The login failed. Try again, or ask an admin to look for the reason in the server’s log.
          </Notice>
        )}
        <div className={css.loginCard}>
          {browserLogin && <ProviderLogin />}
          {browserLogin && <div className={css.or}>or</div>}
          <KeyLogin facts={facts} onDone={onDone} />
        </div>
      </div>
    </main>
  );
}

function ProviderLogin() {
  const [problem, setProblem] = useState("");
  const begin = async () => {
    const path = `/v1/auth/authorize?returnTo=${encodeURIComponent(location.pathname)}`;
    const probe = await fetch(path, { redirect: "manual" });
    if (probe.type === "opaqueredirect") location.assign(path);
    else setProblem("This server's identity adapter does not support browser login. Use a token below.");
  };
  return (
    <>
      <Button look="primary" className={css.big} onClick={() => void begin()}>
        Continue with your organization
        <ArrowRight aria-hidden="true" />
      </Button>
      {problem && <Notice tone="warn">{problem}</Notice>}
    </>
  );
}

function KeyLogin({ facts, onDone }: { facts: Facts; onDone: () => void }) {
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const names = [facts.apiKey && "API key", facts.login && "token"].filter(Boolean).join(" or ");
  const submit = async () => {
    if (!secret.trim()) return setProblem(`Enter your ${names}.`);
    setBusy(true);
    try {
      await logIn(secret.trim(), facts);
      onDone();
    } catch (error) {
      setProblem(
        error instanceof ApiError && error.status !== 401 ? error.message : `The server did not accept this ${names}.`,
      );
      setBusy(false);
    }
  };
  return (
    <form
      style={{ display: "contents" }}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Field label={names[0]!.toUpperCase() + names.slice(1)} error={problem} required>
        {(props) => (
          <Input
            {...props}
            type="password"
            autoComplete="current-password"
            value={secret}
            onChange={(e) => setSecret(e.target.value)}
            autoFocus={!facts.browserLogin}
          />
        )}
      </Field>
      <Button type="submit" look={facts.browserLogin ? "plain" : "primary"} className={css.big} busy={busy}>
        Log in
      </Button>
    </form>
  );
}

/** Exchanges a key for a cookie. If the secret is a token that the server accepts, it is stored for this tab. */
async function logIn(secret: string, facts: Facts): Promise<void> {
  if (facts.apiKey) {
    try {
      await take(api.POST("/v1/auth/login", { body: { key: secret } }));
      return;
    } catch (error) {
      if (!facts.login || !(error instanceof ApiError) || error.status !== 401) throw error;
    }
  }
  rememberToken(secret);
  try {
    await api.GET("/v1/auth/session");
  } catch (error) {
    rememberToken("");
    throw error;
  }
}
