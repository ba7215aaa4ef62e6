import clsx from "clsx";
import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { sentence } from "./format";
import css from "./surface.module.css";

interface PageProps {
  title: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** Shows a screen with its title, purpose, actions and content. */
export const Page = ({ title, about, actions, children }: PageProps) => (
  <div className={css.page}>
    <header className={css.pageHead}>
      <div className={css.pageTitle}>
        <h1>{title}</h1>
        {about && <p>{about}</p>}
      </div>
      {actions && <div className={css.actions}>{actions}</div>}
    </header>
    {children}
  </div>
);

interface CardProps {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  flush?: boolean;
}

export const Card = ({ title, actions, children, flush }: CardProps) => (
  <section className={clsx(css.card, flush && css.flush)}>
    {title && (
      <div className={css.cardHead}>
        <h2>{title}</h2>
        {actions}
      </div>
    )}
    {flush ? children : <div className={css.cardBody}>{children}</div>}
  </section>
);

export type Tone = "plain" | "good" | "warn" | "bad" | "info" | "accent";

interface BadgeProps {
  tone?: Tone;
  dot?: boolean;
  pulse?: boolean;
  children: ReactNode;
  title?: string;
}

export const Badge = ({ tone = "plain", dot, pulse, children, title }: BadgeProps) => (
  <span className={clsx(css.badge, tone !== "plain" && css[tone])} title={title}>
    {dot && <span className={clsx(css.dot, pulse && css.pulse)} aria-hidden="true" />}
    {children}
  </span>
);

interface EmptyProps {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}

export const Empty = ({ icon, title, children, actions }: EmptyProps) => (
  <div className={css.empty}>
    {icon}
    <h2>{title}</h2>
    {children && <p>{children}</p>}
    {actions && <div className={css.actions}>{actions}</div>}
  </div>
);

export function Notice({
  tone = "info",
  isPast,
  children,
  action,
}: {
  tone?: "info" | "warn" | "bad";
  /** Whether it was there before the page, so that it is not announced. */
  isPast?: boolean;
  children: ReactNode;
  action?: ReactNode;
}) {
  const Icon = { info: Info, warn: TriangleAlert, bad: CircleAlert }[tone];
  return (
    <div className={clsx(css.notice, css[`notice${tone}`])} role={tone === "bad" && !isPast ? "alert" : undefined}>
      <Icon aria-hidden="true" />
      <div>{children}</div>
      {action}
    </div>
  );
}

interface FailureProps {
  error: unknown;
  isPast?: boolean;
  action?: ReactNode;
}

/** The error that a screen shows in place of its content. */
export const Failure = ({ error, ...rest }: FailureProps) => (
  <Notice tone="bad" {...rest}>
    {sentence(error)}
  </Notice>
);

export const Facts = ({ facts }: { facts: [string, ReactNode][] }) => (
  <dl className={css.facts}>
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

export const Skeleton = ({ lines = 3 }: { lines?: number }) => (
  <div style={{ display: "grid", gap: 12 }} role="status" aria-label="Loading">
    {Array.from({ length: lines }, (_, i) => (
      <div key={i} className={css.skeleton} style={{ width: `${90 - ((i * 17) % 45)}%` }} />
    ))}
  </div>
);

/** Shown if a link leads to a page that the person may not see. */
export function NotAllowed({ title, who }: { title: string; who: string }) {
  return (
    <Page title={title}>
      <Empty title={`This page is for ${who}`}>If you need something from this page, ask one of them.</Empty>
    </Page>
  );
}
