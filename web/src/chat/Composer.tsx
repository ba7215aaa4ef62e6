import clsx from "clsx";
import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import { useEffect, useRef, useState, type Ref } from "react";
import { createPortal } from "react-dom";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Input, Select } from "../ui/Field";
import { toast } from "../ui/Toast";
import { useModels } from "./capabilities";
import type { Attachment } from "./run";
import css from "./chat.module.css";
import controls from "../ui/controls.module.css";

interface Props {
  running: boolean;
  onSend: (message: string, model: string | undefined, attachments: Attachment[]) => void;
  onStop: () => void;
  text: string;
  onText: (text: string) => void;
  fieldRef?: Ref<HTMLTextAreaElement>;
}

const largest = 5 << 20;
const other = "\u0000other";

/** Where the person writes. */
export function Composer({ running, onSend, onStop, text, onText, fieldRef }: Props) {
  const { model: standard } = useSession();
  const models = useModels();
  const [model, setModel] = useState("");
  const [files, setFiles] = useState<Attachment[]>([]);
  const [over, setOver] = useState(false);
  const [naming, setNaming] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const add = async (list: FileList | File[] | null) => {
    for (const file of list ?? []) {
      if (file.size > largest) toast(`${file.name} is too large: at most 5 MB.`, true);
      else {
        const read = await attachment(file);
        setFiles((all) => [...all, read]);
      }
    }
  };
  const send = () => {
    if (!text.trim() || running) return;
    onSend(text.trim(), model || undefined, files);
    onText("");
    setFiles([]);
  };
  return (
    <form
      className={css.composer}
      onSubmit={(e) => { e.preventDefault(); send(); }}
      onDragOver={(e) => { e.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => { e.preventDefault(); setOver(false); void add(e.dataTransfer.files); }}
    >
      <div className={clsx(css.box, over && css.boxOver)}>
        {files.length > 0 && (
          <div className={css.files}>
            {files.map((f, i) => (
              <span key={i} className={css.file}>
                {f.mimeType.startsWith("image/") && <img src={`data:${f.mimeType};base64,${f.data}`} alt="" />}
                <span>{f.name}</span>
                <Button look="quiet" small label={`Remove ${f.name}`} onClick={() => setFiles(files.filter((_, j) => j !== i))}><X aria-hidden="true" /></Button>
              </span>
            ))}
          </div>
        )}
        <textarea
          ref={fieldRef} aria-label="Message" placeholder="Ask, or say what to do…" rows={1} value={text}
          onChange={(e) => onText(e.target.value)}
          onPaste={(e) => { if (e.clipboardData.files.length > 0) { e.preventDefault(); void add(e.clipboardData.files); } }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && !e.shiftKey && !e.nativeEvent.isComposing) {
              e.preventDefault();
              send();
            }
          }}
        />
        <div className={css.tray}>
          <Button look="quiet" small label="Attach files" onClick={() => picker.current?.click()}><Paperclip aria-hidden="true" /></Button>
          <input ref={picker} type="file" multiple hidden aria-label="Files" onChange={(e) => { void add(e.target.files); e.target.value = ""; }} />
          {models.length > 0 ? (
            <Select className={css.model} aria-label="Model" value={model} onChange={(e) => (e.target.value === other ? setNaming(true) : setModel(e.target.value))}>
              <option value="">{standard ?? "No model"}</option>
              {[...new Set([...models, model])].filter((m) => m && m !== standard).map((m) => <option key={m}>{m}</option>)}
              <option value={other}>Another model…</option>
            </Select>
          ) : <span className={css.modelName}>{standard ?? "No model is configured"}</span>}
          {running
            ? <Button small className={controls.icon} label="Stop" onClick={onStop}><Square aria-hidden="true" fill="currentColor" /></Button>
            : <Button type="submit" look="primary" small label="Send" disabled={!text.trim()}><ArrowUp aria-hidden="true" /></Button>}
        </div>
      </div>
      {naming && <NameModel onClose={() => setNaming(false)} onDone={setModel} />}
    </form>
  );
}

function NameModel({ onDone, onClose }: { onDone: (model: string) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const done = () => {
    if (!/^[^:\s]+:\S+$/.test(name.trim())) return;
    onDone(name.trim());
    onClose();
  };
  return createPortal(
    <Dialog title="Another model" onClose={onClose} onSubmit={done} footer={<><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary">Use it</Button></>}>
      <Field label="Model" required hint="provider:model, such as anthropic:claude-sonnet-5">{(props) => <Input {...props} mono autoFocus value={name} onChange={(e) => setName(e.target.value)} />}</Field>
    </Dialog>,
    document.body,
  );
}

async function attachment(file: File): Promise<Attachment> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return { name: file.name, mimeType: file.type || "application/octet-stream", data: btoa(binary) };
}

/** Puts the cursor into the composer when a conversation opens. */
export function useFocus(field: { current: HTMLTextAreaElement | null }, key: string | undefined): void {
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [field, key]);
}
