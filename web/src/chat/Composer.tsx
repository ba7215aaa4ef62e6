import clsx from "clsx";
import { ArrowUp, LayoutGrid, Paperclip, Square, X } from "lucide-react";
import { useEffect, useEffectEvent, useRef, useState, type Ref } from "react";
import { createPortal } from "react-dom";
import { useApps } from "../api/apps";
import type { App } from "../api/client";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Input, Select } from "../ui/Field";
import { useShown } from "../ui/idle";
import { toast, toastError } from "../ui/Toast";
import { useModels } from "./capabilities";
import type { Draft } from "./drafts";
import { withFiles } from "./files";
import { onlyTouch, sendsMessage } from "./keys";
import css from "./chat.module.css";
import controls from "../ui/controls.module.css";

interface Props {
  running: boolean;
  /** Whether a message can be queued until the run ends. */
  mayQueue: boolean;
  draft: Draft;
  onDraft: (to: Partial<Draft>) => void;
  /** The apps that are switched off in this chat. */
  off: string[];
  onOff: (apps: string[]) => void;
  onSend: () => void;
  onStop: () => void;
  fieldRef?: Ref<HTMLTextAreaElement>;
}

const other = "\u0000other";

/** Shows the field for a message, with its files, apps and model. */
export function Composer({ running, mayQueue, draft, onDraft, off, onOff, onSend, onStop, fieldRef }: Props) {
  const { model: standard } = useSession();
  const models = useModels();
  const { text, files, model } = draft;
  const [over, setOver] = useState(false);
  const [naming, setNaming] = useState(false);
  const [choosing, setChoosing] = useState(false);
  const { data: apps = [] } = useApps(useShown());
  const on = apps.filter((app) => !off.includes(app.name)).length;
  const [reading, setReading] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const setModel = (to: string) => onDraft({ model: to });
  const add = async (list: FileList | null) => {
    const chosen = [...(list ?? [])]; // a copy, because resetting the input empties its list
    setReading(true);
    try {
      const { files: all, problems } = await withFiles(files, chosen);
      onDraft({ files: all });
      for (const problem of problems) toast(problem, true);
    } catch (error) {
      toastError(error);
    }
    setReading(false);
  };
  // Without this, a file dropped elsewhere on the page would replace the page.
  const drag = useEffectEvent((event: DragEvent) => {
    const carried = event.dataTransfer;
    if (!carried?.types.includes("Files") || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    setOver(event.type === "dragover");
    if (event.type === "drop") void add(carried.files);
  });
  useEffect(() => {
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    document.addEventListener("dragover", drag);
    document.addEventListener("drop", drag);
    document.addEventListener("dragleave", leave);
    return () => {
      document.removeEventListener("dragover", drag);
      document.removeEventListener("drop", drag);
      document.removeEventListener("dragleave", leave);
    };
  }, []);
  // Notices are placed above the form, so they need its height.
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const { style } = document.documentElement;
    const observer = new ResizeObserver(([entry]) =>
      style.setProperty("--composer", `${entry!.borderBoxSize[0]!.blockSize}px`),
    );
    observer.observe(form.current!);
    return () => {
      observer.disconnect();
      style.removeProperty("--composer");
    };
  }, []);
  const full = text.trim() !== "" || files.length > 0;
  const send = () => {
    if (full && (!running || mayQueue) && !reading) onSend();
  };
  return (
    <form
      ref={form}
      className={css.composer}
      onSubmit={(e) => {
        e.preventDefault();
        send();
      }}
    >
      <div className={clsx(css.box, over && css.boxOver)}>
        {files.length > 0 && (
          <div className={css.files}>
            {files.map((f, i) => (
              <span key={i} className={css.file}>
                {f.mimeType.startsWith("image/") && <img src={f.url ?? `data:${f.mimeType};base64,${f.data}`} alt="" />}
                <span>{f.name}</span>
                <Button
                  look="quiet"
                  small
                  label={`Remove ${f.name}`}
                  onClick={() => onDraft({ files: files.filter((_, j) => j !== i) })}
                >
                  <X aria-hidden="true" />
                </Button>
              </span>
            ))}
          </div>
        )}
        <textarea
          ref={fieldRef}
          aria-label="Message"
          data-message
          placeholder="Ask a question or describe a task…"
          rows={1}
          value={text}
          onChange={(e) => onDraft({ text: e.target.value })}
          onPaste={(e) => {
            if (e.clipboardData.files.length > 0) {
              e.preventDefault();
              void add(e.clipboardData.files);
            }
          }}
          onKeyDown={(e) => {
            if (!sendsMessage(e)) return;
            e.preventDefault();
            send();
          }}
        />
        <div className={css.tray}>
          <Button look="quiet" small label="Attach files" onClick={() => picker.current?.click()}>
            <Paperclip aria-hidden="true" />
          </Button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(e) => {
              void add(e.target.files);
              e.target.value = "";
            }}
          />
          {apps.length > 0 && (
            <Button
              look="quiet"
              small
              aria-label={`Apps in this chat: ${on} of ${apps.length}`}
              title="Apps in this chat"
              onClick={() => setChoosing(true)}
            >
              <LayoutGrid aria-hidden="true" />
              {on < apps.length && `${on} of ${apps.length}`}
            </Button>
          )}
          {models.length > 0 ? (
            <Select
              className={css.model}
              aria-label="Model"
              value={model}
              onChange={(e) => (e.target.value === other ? setNaming(true) : setModel(e.target.value))}
            >
              <option value="">{standard ?? "No model"}</option>
              {[...new Set([...models, model])]
                .filter((m) => m && m !== standard)
                .map((m) => (
                  <option key={m}>{m}</option>
                ))}
              <option value={other}>Another model…</option>
            </Select>
          ) : (
            <span className={css.modelName}>{standard ?? "No model is configured"}</span>
          )}
          <span className={css.ends}>
            {running && (
              <Button small className={controls.icon} label="Stop" onClick={onStop}>
                <Square aria-hidden="true" fill="currentColor" />
              </Button>
            )}
            {(!running || (full && mayQueue)) && (
              <Button
                type="submit"
                look="primary"
                small
                label={running ? "Send after this answer" : "Send"}
                busy={reading}
                disabled={!full}
              >
                <ArrowUp aria-hidden="true" />
              </Button>
            )}
          </span>
        </div>
      </div>
      {choosing && <ChooseApps apps={apps} off={off} onOff={onOff} onClose={() => setChoosing(false)} />}
      {naming && <NameModel onClose={() => setNaming(false)} onDone={setModel} />}
    </form>
  );
}

interface ChooseProps {
  apps: App[];
  off: string[];
  onOff: (apps: string[]) => void;
  onClose: () => void;
}

/** Switches apps on or off in one chat. */
function ChooseApps({ apps, off, onOff, onClose }: ChooseProps) {
  const others = (name: string) => off.filter((one) => one !== name);
  return createPortal(
    <Dialog title="Apps in this chat" onClose={onClose}>
      <p>The model can use the apps that are switched on. Changes apply from the next message on.</p>
      <ul className={css.apps}>
        {apps.map(({ name, ui }) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                checked={!off.includes(name)}
                onChange={(e) => onOff(e.target.checked ? others(name) : [...others(name), name])}
              />
              {ui?.name || name}
            </label>
          </li>
        ))}
      </ul>
      <div>
        <Button small disabled={off.length === 0} onClick={() => onOff([])}>
          Switch all on
        </Button>
      </div>
    </Dialog>,
    document.body,
  );
}

function NameModel({ onDone, onClose }: { onDone: (model: string) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const done = () => {
    if (!/^[^:\s]+:\S+$/.test(name.trim())) return setError("Enter the provider, a colon and the model’s name.");
    onDone(name.trim());
    onClose();
  };
  return createPortal(
    <Dialog
      title="Another model"
      onClose={onClose}
      onSubmit={done}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Use it
          </Button>
        </>
      }
    >
      <Field label="Model" required hint="provider:model, such as anthropic:claude-sonnet-5" error={error}>
        {(props) => <Input {...props} mono value={name} onChange={(e) => setName(e.target.value)} />}
      </Field>
    </Dialog>,
    document.body,
  );
}

/** Focuses the message field, unless that would open an on-screen keyboard. */
export function focusIn(field: { current: HTMLTextAreaElement | null }): void {
  if (!onlyTouch.matches) field.current?.focus();
}

/** Focuses the message field when a conversation opens. */
export function useFocus(field: { current: HTMLTextAreaElement | null }): void {
  useEffect(() => focusIn(field), [field]);
}
