import { ExternalLink, IdCard, MessageCircleQuestion } from "lucide-react";
import { useState } from "react";
import { isLinkPage, openPage, useLinkPage } from "../accounts/data";
import { api } from "../api/client";
import { initial, problemsOf, type JsonSchema } from "../forms/schema";
import { SchemaForm } from "../forms/SchemaForm";
import { Button } from "../ui/Button";
import { Badge, Failure } from "../ui/Surface";
import type { QuestionPart } from "./run";
import css from "./chat.module.css";

const said = { accept: "answered", decline: "declined", cancel: "dismissed" };

/** The name that questions use for the server itself. */
const ownServer = "system";

/** Shows a question that an app, or the server itself, asks while a tool runs. */
export function Question({ question }: { question: QuestionPart }) {
  const { request, answer } = question;
  const own = request.server === ownServer;
  if (own && request.url && isLinkPage(request.url)) return <LoginNeeded question={question} url={request.url} />;
  return (
    <section
      className={css.question}
      aria-label={own ? "Question from Ropewalk" : `Question from ${request.server}`}
      data-open-question={!answer || undefined}
    >
      <header>
        <MessageCircleQuestion aria-hidden="true" />
        <span>
          <b>{own ? "Ropewalk" : request.server}</b> asks you about {own ? "the" : "its"} tool{" "}
          <code>{request.tool}</code>
        </span>
      </header>
      <p>{request.message}</p>
      {answer ? (
        <div>
          <Badge tone={answer.action === "accept" ? "good" : "plain"}>
            {outcomeOf(answer)}
            {question.complete && ", and completed"}
          </Badge>
        </div>
      ) : (
        <Answer question={question} />
      )}
    </section>
  );
}

/** Shows a call that is waiting until the person has linked an account or logged in again. */
function LoginNeeded({ question, url }: { question: QuestionPart; url: string }) {
  const { request, answer, complete } = question;
  const linkPage = useLinkPage();
  const { busy, error, send } = useReply(request.id);
  const opened = answer?.action === "accept";
  return (
    <section className={css.question} aria-label={`Login at ${new URL(url).searchParams.get("app")}`}>
      <header>
        <IdCard aria-hidden="true" />
        <span>
          The tool <code>{request.tool}</code> needs a login
        </span>
      </header>
      <p>{request.message}</p>
      {error !== null && <Failure error={error} />}
      {complete ? (
        <div>
          <Badge tone="good" dot>
            linked
          </Badge>
        </div>
      ) : answer && !opened ? (
        <div>
          <Badge>{outcomeOf(answer)}</Badge>
        </div>
      ) : (
        <div className={css.row}>
          <Button
            look={opened ? "plain" : "primary"}
            busy={busy && !opened}
            onClick={() => {
              openPage(linkPage(url));
              if (!opened) void send("accept");
            }}
          >
            <ExternalLink aria-hidden="true" />
            {opened ? "Open the page again" : "Link an account"}
          </Button>
          {opened ? (
            <span role="status" className={css.meta}>
              The call continues once the account is linked.
            </span>
          ) : (
            <Button look="quiet" disabled={busy} onClick={() => void send("decline")}>
              Not now
            </Button>
          )}
        </div>
      )}
    </section>
  );
}

type Action = "accept" | "decline" | "cancel";

const outcomeOf = (answer: NonNullable<QuestionPart["answer"]>) =>
  answer.reason === "timeout"
    ? "not answered in time"
    : answer.reason === "withdrawn"
      ? "withdrawn by the app"
      : said[answer.action];

/** Sends the reply to a question. */
function useReply(id: string) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (action: Action, content?: Record<string, unknown>) => {
    setBusy(true);
    setError(null);
    try {
      await api.POST("/v1/chat/elicitations/{id}", {
        params: { path: { id } },
        body: { action, ...(content && { content }) },
      });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return { busy, error, send };
}

type Fields = Record<string, unknown>;

/** What was entered for open questions. It is kept while the person visits other screens. */
const entered = new WeakMap<QuestionPart["request"], Fields>();

function Answer({ question }: { question: QuestionPart }) {
  const { request } = question;
  const schema = (request.requestedSchema ?? {}) as JsonSchema;
  const [value, setValue] = useState(() => entered.get(request) ?? ((initial(schema) ?? {}) as Fields));
  const [errors, setErrors] = useState(new Map<string, string>());
  const { busy, error, send: reply } = useReply(request.id);
  const send = (action: Action) => {
    const content = action === "accept" && request.mode === "form" ? value : undefined;
    if (content) {
      const gaps = problemsOf(schema, content);
      setErrors(gaps);
      if (gaps.size > 0) return;
    }
    void reply(action, content);
  };
  return (
    <form
      style={{ display: "grid", gap: 16 }}
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        send("accept");
      }}
    >
      {request.mode === "url" ? (
        <>
          <code className={css.url}>{request.url}</code>
          <p>Check the address before you open it. What you enter there goes to that site and not to this server.</p>
        </>
      ) : (
        <SchemaForm
          schema={schema}
          value={value}
          onChange={(to) => {
            entered.set(request, to);
            setValue(to);
          }}
          errors={errors}
        />
      )}
      {error !== null && <Failure error={error} />}
      <div className={css.row}>
        {request.mode === "url" ? (
          <Button
            look="primary"
            busy={busy}
            onClick={() => {
              window.open(request.url, "_blank", "noopener,noreferrer");
              send("accept");
            }}
          >
            <ExternalLink aria-hidden="true" />
            Open the address
          </Button>
        ) : (
          <Button type="submit" look="primary" busy={busy}>
            Send answer
          </Button>
        )}
        <Button onClick={() => send("decline")} disabled={busy}>
          Decline
        </Button>
      </div>
    </form>
  );
}
