import type { App, AppState } from "../api/client";
import { Badge, type Tone } from "../ui/Surface";
import css from "./apps.module.css";

const tones: Record<AppState, Tone> = {
  running: "good",
  starting: "info",
  crashed: "warn",
  dead: "bad",
  stopped: "plain",
};

/** Returns the name of a state. */
export const stateName = (state: AppState) => (state === "dead" ? "keeps crashing" : state);

type Status = Pick<App, "status" | "asleep">;

/** Returns the name of an app's current state. */
export const statusOf = ({ status, asleep }: Status) => (asleep ? "asleep" : stateName(status));

export const StateBadge = ({ app }: { app: Status }) => (
  <Badge
    tone={app.asleep ? "plain" : tones[app.status]}
    dot
    pulse={app.status === "starting" || app.status === "crashed"}
    title={app.asleep ? "Its processes start on the next call" : undefined}
  >
    {statusOf(app)}
  </Badge>
);

/** Shows the app's icon if it is an emoji or an embedded image, or else its first letters. */
export function AppMark({ app }: { app: Pick<App, "name" | "ui"> }) {
  const icon = app.ui?.icon ?? "";
  if (icon.startsWith("data:image/"))
    return (
      <span className={css.mark}>
        <img src={icon} alt="" width={22} height={22} />
      </span>
    );
  const emoji = /^\p{Extended_Pictographic}/u.test(icon) ? icon : "";
  return (
    <span className={css.mark} aria-hidden="true">
      {emoji || app.name.slice(0, 2).toUpperCase()}
    </span>
  );
}
