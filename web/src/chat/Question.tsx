import { ExternalLink, MessageCircleQuestion } from "lucide-react";
import { useState } from "react";
import { request as ask } from "../api/http";
import { initial, problemsOf, type JsonSchema } from "../forms/schema";
import { SchemaForm } from "../forms/SchemaForm";
import { Button } from "../ui/Button";
import { Badge, Failure } from "../ui/Surface";
import type { QuestionPart } from "./run";
import css from "./chat.module.css";

const said = { accept: "answered", decline: "declined", cancel: "dismissed" };

/** What an app asks the person while its tool runs. */
export function Question({ question }: { question: QuestionPart }) {
  const { request, answer } = question;
  return (
    <section className={css.question} aria-label={`Question of ${request.server}`}>
      <header><MessageCircleQuestion aria-hidden="true" /><span><b>{request.server}</b> asks, for its tool <code>{request.tool}</code></span></header>
      <p>{request.message}</p>
      {answer
        ? <div><Badge tone={answer.action === "accept" ? "good" : "plain"}>{answer.reason === "timeout" ? "not answered in time" : answer.reason === "withdrawn" ? "withdrawn by the app" : said[answer.action]}{question.complete && ", and done"}</Badge></div>
        : <Answer question={question} />}
    </section>
  );
}

function Answer({ question }: { question: QuestionPart }) {
  const { request } = question;
  const schema = (request.requestedSchema ?? {}) as JsonSchema;
  const [value, setValue] = useState(() => (initial(schema) ?? {}) as Record<string, unknown>);
  const [errors, setErrors] = useState(new Map<string, string>());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (action: "accept" | "decline" | "cancel") => {
    if (action === "accept" && request.mode === "form") {
      const gaps = problemsOf(schema, value);
      setErrors(gaps);
      if (gaps.size > 0) return;
    }
    setBusy(true);
    setError(null);
    try {
      const content = action === "accept" && request.mode === "form" ? value : undefined;
      await ask("POST", `/v1/chat/elicitations/${encodeURIComponent(request.id)}`, { body: { action, ...(content && { content }) } });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <form style={{ display: "grid", gap: 16 }} noValidate onSubmit={(e) => { e.preventDefault(); void send("accept"); }}>
      {request.mode === "url"
        ? <><code className={css.url}>{request.url}</code><p>Check the address before you open it: what you enter there goes to that site, not to this server.</p></>
        : <SchemaForm schema={schema} value={value} onChange={setValue} errors={errors} />}
      {error !== null && <Failure error={error} />}
      <div className={css.row}>
        {request.mode === "url"
          ? <Button look="primary" busy={busy} onClick={() => { window.open(request.url, "_blank", "noopener,noreferrer"); void send("accept"); }}><ExternalLink aria-hidden="true" />Open the address</Button>
          : <Button type="submit" look="primary" busy={busy}>Send answer</Button>}
        <Button onClick={() => void send("decline")} disabled={busy}>Decline</Button>
      </div>
    </form>
  );
}
