import { useState } from "react";
import { createPortal } from "react-dom";
import { Dialog } from "./Dialog";
import css from "./surface.module.css";

/** Shows a picture that can be enlarged with a click. */
export function Picture({ src, name, className }: { src: string; name: string; className?: string }) {
  const [open, setOpen] = useState(false);
  return (
    <span className={css.picture}>
      <img className={className} src={src} alt={name} />
      <button type="button" aria-label={`Enlarge ${name}`} onClick={() => setOpen(true)} />
      {open &&
        createPortal(
          <Dialog title={name} wide onClose={() => setOpen(false)}>
            <img className={css.enlarged} src={src} alt="" />
          </Dialog>,
          document.body,
        )}
    </span>
  );
}
