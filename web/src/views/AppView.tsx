import { useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import type { ToolResult } from "../api/client";
import { useSession } from "../api/session";
import type { Tool } from "../api/tools";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Dialog";
import { toastError } from "../ui/Toast";
import { Failure, Notice, Skeleton } from "../ui/Surface";
import { connectView } from "./bridge";
import { watchFlood } from "./flood";
import { readView, type ViewResource } from "./resource";
import css from "./views.module.css";

interface Props {
  server: string;
  uri: string;
  tool?: Tool;
  input?: Record<string, unknown>;
  result?: ToolResult;
  /** Receives a message that the view writes for the chat. */
  onMessage?: (text: string) => void;
}

/** Shows a view of an app (MCP Apps) in a sandbox on another origin. */
export default function AppView(props: Props) {
  const { workspace } = useSession();
  const view = useQuery({
    queryKey: ["view", workspace.id, props.server, props.uri],
    staleTime: 60_000,
    queryFn: () => readView(props.server, props.uri),
  });
  const [granted, setGranted] = useState<ViewResource["meta"]["permissions"] | null>(null);
  const [flooded, setFlooded] = useState(false);
  if (view.isLoadingError) return <Failure error={view.error} />;
  if (!view.data) return <Skeleton lines={4} />;
  const asked = Object.keys(view.data.meta.permissions ?? {});
  if (asked.length > 0 && granted === null) {
    return (
      <div className={`${css.view} ${css.ask}`}>
        <p>
          The view of <b>{props.server}</b> wants to use: {asked.join(", ")}.
        </p>
        <div className={css.askRow}>
          <Button look="primary" onClick={() => setGranted(view.data.meta.permissions)}>
            Allow
          </Button>
          <Button onClick={() => setGranted({})}>Show without permissions</Button>
        </div>
      </div>
    );
  }
  if (flooded) {
    return (
      <Notice
        tone="warn"
        action={
          <Button small onClick={() => setFlooded(false)}>
            Show the view again
          </Button>
        }
      >
        <p role="status">
          The view of <b>{props.server}</b> was stopped because it sent too many messages.
        </p>
      </Notice>
    );
  }
  return <Frame {...props} view={view.data} granted={granted ?? {}} onFlood={() => setFlooded(true)} />;
}

interface Call {
  tool: string;
  ok: boolean | null;
}

interface FrameProps extends Props {
  view: ViewResource;
  granted: NonNullable<ViewResource["meta"]["permissions"]>;
  onFlood: () => void;
}

function Frame({ server, uri, tool, input, result, onMessage, view, granted, onFlood }: FrameProps) {
  const { facts } = useSession();
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(240);
  const [calls, setCalls] = useState<Call[]>([]);
  const [link, setLink] = useState<{ url: string; answer: (open: boolean) => void } | null>(null);
  const src = `${facts.viewOrigin}/console/view?csp=${encodeURIComponent(JSON.stringify(view.meta.csp ?? {}))}`;

  // A view is connected only once, with the values at that time.
  const connect = useEffectEvent((element: HTMLIFrameElement) =>
    connectView({
      frame: element,
      server,
      version: facts.version,
      view,
      tool,
      input,
      result,
      granted,
      onHeight: setHeight,
      onMessage,
      onCall: (name) => {
        const call: Call = { tool: name, ok: null };
        setCalls((all) => [...all.slice(-49), call]);
        return (ok) => setCalls((all) => all.map((other) => (other === call ? { tool: name, ok } : other)));
      },
      onLink: (url) =>
        new Promise((answer) => {
          if (/^https?:\/\//.test(url)) setLink({ url, answer });
          else answer(false);
        }),
    }),
  );
  const flooded = useEffectEvent(onFlood);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    let close: (() => void) | null = null;
    let gone = false;
    const unwatch = watchFlood(element, () => {
      element.src = "about:blank"; // immediately, because React may be delayed by the messages
      close?.();
      flooded();
    });
    connect(element).then((end) => {
      close = end;
      if (gone) end();
      else element.src = src;
    }, toastError);
    return () => {
      gone = true;
      unwatch();
      close?.();
    };
  }, [server, view, src]);

  const answer = (open: boolean) => {
    if (open && link) window.open(link.url, "_blank", "noopener,noreferrer");
    link?.answer(open);
    setLink(null);
  };
  const allow = Object.keys(granted)
    .map((name) => `${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)} *`)
    .join("; ");
  return (
    <div className={css.view}>
      <iframe
        ref={frame}
        className={css.frame}
        style={{ height }}
        title={`View from ${server}`}
        sandbox="allow-scripts allow-forms"
        allow={allow}
        referrerPolicy="no-referrer"
      />
      <div className={css.bar} aria-live="polite">
        <span>
          View from <b>{server}</b>
        </span>
        {calls.length > 0 && (
          <span>
            · called{" "}
            {calls
              .slice(-3)
              .map((c) => `${c.tool}${c.ok === null ? " …" : c.ok ? " ✓" : " ✗"}`)
              .join(", ")}
            {calls.length > 3 && ` and ${calls.length - 3} more`}
          </span>
        )}
        <code
          title={uri}
          style={{
            marginLeft: "auto",
            overflow: "hidden",
            textOverflow: "ellipsis",
            whiteSpace: "nowrap",
            maxWidth: "40%",
          }}
        >
          {uri}
        </code>
      </div>
      {link && (
        <Confirm title="Open a link?" action="Open" onConfirm={() => answer(true)} onClose={() => answer(false)}>
          <p>
            The view of <b>{server}</b> wants to open this address in a new tab:
          </p>
          <p>
            <code style={{ overflowWrap: "anywhere" }}>{link.url}</code>
          </p>
        </Confirm>
      )}
    </div>
  );
}
