import clsx from "clsx";
import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { Button } from "./Button";
import { toast } from "./Toast";
import css from "./surface.module.css";

/** Shows preformatted text with a copy button. */
export const Code = ({ text, label, wrap }: { text: string; label: string; wrap?: boolean }) => (
  <div className={clsx(css.code, wrap && css.wrap)}>
    <pre tabIndex={0} role="region" aria-label={label}>
      <code>{text}</code>
    </pre>
    <CopyButton text={text} className={css.copy} />
  </div>
);

export function CopyButton({ text, className }: { text: string; className?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      toast("The browser does not allow copying here. Select the text and copy it yourself.", true);
    }
  };
  return (
    <Button look="quiet" small label={copied ? "Copied" : "Copy"} className={className} onClick={() => void copy()}>
      {copied ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
    </Button>
  );
}
