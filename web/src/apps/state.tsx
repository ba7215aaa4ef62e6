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

/** A state in the words of people. */
export const stateName = (state: AppState) => (state === "dead" ? "keeps crashing" : state);

export const StateBadge = ({ state }: { state: AppState }) => (
  <Badge tone={tones[state]} dot pulse={state === "starting" || state === "crashed"}>
    {stateName(state)}
  </Badge>
);

/** The app's own icon when it is an image that needs no request, else its letters. */
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
