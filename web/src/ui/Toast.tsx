import clsx from "clsx";
import { X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { isUnreachable } from "../api/http";
import { Button } from "./Button";
import { sentence } from "./format";
import css from "./overlay.module.css";

interface Note {
  id: number;
  text: string;
  bad: boolean;
  action?: Action;
}

/** An action that a message offers. The message stays until it is dismissed, or for the given number of milliseconds. */
interface Action {
  label: string;
  run: () => void;
  for?: number;
}

let notes: Note[] = [];
let next = 1;
const readers = new Set<() => void>();

function change(to: Note[]) {
  notes = to;
  for (const reader of readers) reader();
}

/** Shows a message for a few seconds. */
export function toast(text: string, bad = false, action?: Action): void {
  change([...notes.slice(-3), { id: next++, text, bad, action }]);
}

/** Shows why something failed. If the server could not be reached, the message has a Retry button. */
export function toastError(error: unknown, retry?: () => void): void {
  const unsent = retry !== undefined && isUnreachable(error);
  toast(`${unsent ? "Not sent. " : ""}${sentence(error)}`, true, unsent ? { label: "Retry", run: retry } : undefined);
}

const dismiss = (note: Note) => change(notes.filter((other) => other.id !== note.id));

const subscribe = (reader: () => void) => {
  readers.add(reader);
  return () => readers.delete(reader);
};

export function Toasts() {
  const all = useSyncExternalStore(subscribe, () => notes);
  return (
    <div className={css.toasts} role="status" aria-live="polite">
      {all.map((note) => (
        <ToastItem key={note.id} note={note} />
      ))}
    </div>
  );
}

function ToastItem({ note }: { note: Note }) {
  const close = () => dismiss(note);
  useEffect(() => {
    if (note.action && !note.action.for) return; // the message waits for a decision
    const timer = setTimeout(() => dismiss(note), note.action?.for ?? (note.bad ? 12_000 : 5_000));
    return () => clearTimeout(timer);
  }, [note]);
  return (
    <div className={clsx(css.toast, note.bad && css.toastBad)}>
      <p>{note.text}</p>
      {note.action && (
        <Button
          small
          onClick={() => {
            close();
            note.action?.run();
          }}
        >
          {note.action.label}
        </Button>
      )}
      <Button look="quiet" small label="Dismiss" onClick={close}>
        <X aria-hidden="true" />
      </Button>
    </div>
  );
}
