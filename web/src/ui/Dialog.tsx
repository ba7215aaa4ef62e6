import clsx from "clsx";
import { X } from "lucide-react";
import { useEffect, useId, useRef, type ReactNode } from "react";
import { Button } from "./Button";
import css from "./overlay.module.css";

interface Props {
  title: string;
  onClose: () => void;
  wide?: boolean;
  children: ReactNode;
  footer?: ReactNode;
  onSubmit?: () => void;
}

/** Shows a modal dialog. It uses the browser's own dialog element, so the focus stays inside, Escape closes it, and
 * the page behind it is inert. When it opens, its first field gets the focus. autoFocus has no effect inside it,
 * because React focuses the element while the dialog is still hidden. */
export function Dialog({ title, onClose, wide, children, footer, onSubmit }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-body] :is(input:not([hidden]), textarea, select)")?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const content = (
    <>
      <header className={css.dialogHead}>
        <h2 id={id}>{title}</h2>
        <Button look="quiet" small label="Close" onClick={onClose}>
          <X aria-hidden="true" />
        </Button>
      </header>
      <div className={css.dialogBody} data-body tabIndex={-1}>
        {children}
      </div>
      {footer && <footer className={css.dialogFoot}>{footer}</footer>}
    </>
  );
  return (
    <dialog
      ref={ref}
      className={clsx(css.dialog, wide && css.wide)}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== event.currentTarget) return; // the event comes from a file picker that was cancelled
        event.preventDefault();
        onClose();
      }}
      // On a second Escape, the browser closes the dialog without a cancel event.
      onClose={() => {
        if (!ref.current?.open) onClose();
      }}
    >
      {onSubmit ? (
        <form
          style={{ display: "contents" }}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            event.stopPropagation(); // the dialog may be in a component inside another form
            onSubmit();
          }}
        >
          {content}
        </form>
      ) : (
        content
      )}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ReactNode;
  action: string;
  busy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks for confirmation of a serious action. */
export const Confirm = ({ title, children, action, busy, onConfirm, onClose }: ConfirmProps) => (
  <Dialog
    title={title}
    onClose={onClose}
    onSubmit={onConfirm}
    footer={
      <>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="danger" busy={busy}>
          {action}
        </Button>
      </>
    }
  >
    {children}
  </Dialog>
);
