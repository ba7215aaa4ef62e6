import clsx from "clsx";
import type { ComponentProps } from "react";
import { Spinner } from "./Spinner";
import css from "./controls.module.css";

export type ButtonProps = ComponentProps<"button"> & {
  look?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  /** The accessible name of a button that only shows an icon. */
  label?: string;
  busy?: boolean;
};

export function Button({ look = "plain", small, label, busy, className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={clsx(css.button, css[look], small && css.small, label && css.icon, className)}
      aria-label={label}
      title={label}
      aria-busy={busy || undefined}
      disabled={disabled || busy}
      {...rest}
    >
      {busy && <Spinner />}
      {!(busy && label) && children}
    </button>
  );
}
