import clsx from "clsx";
import { Search as SearchIcon } from "lucide-react";
import { useId, type ComponentProps, type ReactNode } from "react";
import css from "./controls.module.css";

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string;
  required?: boolean;
  children: (props: {
    id: string;
    "aria-describedby"?: string;
    "aria-invalid"?: true;
    "aria-required"?: true;
  }) => ReactNode;
}

/** Shows a control with a label, a hint and an error. */
export function Field({ label, hint, error, required, children }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={css.field}>
      <label className={css.label} htmlFor={id}>
        {label}
        {required && (
          <span className={css.required} aria-hidden="true">
            *
          </span>
        )}
      </label>
      {children({
        id,
        "aria-describedby": described || undefined,
        "aria-invalid": error ? true : undefined,
        "aria-required": required || undefined,
      })}
      {hint && (
        <p className={css.hint} id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className={css.error} id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

export const Input = ({ className, mono, ...rest }: ComponentProps<"input"> & { mono?: boolean }) => (
  <input className={clsx(css.input, mono && css.mono, className)} {...rest} />
);

export const Textarea = ({ className, mono, ...rest }: ComponentProps<"textarea"> & { mono?: boolean }) => (
  <textarea className={clsx(css.input, mono && css.mono, className)} {...rest} />
);

export const Select = ({ className, ...rest }: ComponentProps<"select">) => (
  <select className={clsx(css.input, className)} {...rest} />
);

export const Search = ({ label, ...rest }: ComponentProps<"input"> & { label: string }) => (
  <span className={css.search}>
    <SearchIcon aria-hidden="true" />
    <input type="search" className={css.input} aria-label={label} placeholder={label} {...rest} />
  </span>
);
