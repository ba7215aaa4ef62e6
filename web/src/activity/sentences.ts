import type { Tone } from "../ui/Surface";

interface Description {
  tone: Tone;
  sentence: string;
}

const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));

/** Describes an event in one sentence. */
export function describe(name: string, data: Record<string, unknown>): Description {
  const app = text(data.name ?? data.app ?? data.server);
  switch (name) {
    case "bundle.progress":
      return {
        tone: "info",
        sentence: `${app} is ${text(data.stage)}${data.message ? ` (${text(data.message)})` : ""}`,
      };
    case "bundle.installed":
      return {
        tone: "good",
        sentence: `${app} was installed${data.bundleName ? ` from ${text(data.bundleName)}` : ""}`,
      };
    case "bundle.install_failed":
      return { tone: "bad", sentence: `${app || "An app"} could not be installed: ${text(data.message)}` };
    case "bundle.uninstalled":
      return { tone: "plain", sentence: `${app} was uninstalled` };
    case "bundle.started":
      return { tone: "good", sentence: `${app} was started` };
    case "bundle.stopped":
      return { tone: "plain", sentence: `${app} was stopped` };
    case "bundle.crashed":
      return {
        tone: "warn",
        sentence: `${app} crashed. Restart attempt ${text(data.restartAttempt)}${data.reason ? ` (${text(data.reason)})` : ""}`,
      };
    case "bundle.recovered":
      return { tone: "good", sentence: `${app} has recovered` };
    case "bundle.dead":
      return { tone: "bad", sentence: `${app} keeps crashing and will not be restarted: ${text(data.message)}` };
    case "app.permissions":
      return { tone: "info", sentence: `The permissions of ${app} were changed` };
    case "app.denied":
      return { tone: "warn", sentence: `${app} tried to use something without permission` };
    case "account.linked":
      return { tone: "good", sentence: `The account ${text(data.name)} was linked at ${text(data.app)}` };
    case "account.login_needed":
      return { tone: "warn", sentence: `The account ${text(data.name)} at ${text(data.app)} needs a new login` };
    case "account.unlinked":
      return { tone: "plain", sentence: `The account ${text(data.name)} was unlinked from ${text(data.app)}` };
    case "pin.added":
      return { tone: "info", sentence: `${text(data.server)} has a new tool: ${text(data.tool)}` };
    case "pin.changed":
      return {
        tone: "warn",
        sentence: `${text(data.server)} changed its tool ${text(data.tool)} without a new version${data.held ? "; the tool is held back" : ""}`,
      };
    case "pin.decided":
      return {
        tone: data.decision === "accepted" ? "good" : "plain",
        sentence: `The change to ${text(data.tool)} in ${text(data.server)} was ${text(data.decision)}`,
      };
    case "approval.requested":
      return { tone: "warn", sentence: `A call to ${text(data.tool)} is waiting for approval` };
    case "approval.decided":
      return {
        tone: data.decision === "approved" ? "good" : "bad",
        sentence: data.always
          ? `All calls to ${text(data.tool)} were allowed`
          : `A call to ${text(data.tool)} was ${text(data.decision)}`,
      };
    case "approval.withdrawn":
      return { tone: "plain", sentence: `Calls to ${text(data.tool)} need approval again` };
    case "approval.ended":
      return {
        tone: "plain",
        sentence:
          data.state === "cancelled"
            ? `A waiting call to ${text(data.tool)} was cancelled`
            : `The approval for a call to ${text(data.tool)} expired`,
      };
    case "conversation.deleted":
      return { tone: "plain", sentence: "One of your conversations was deleted" };
    case "conversation.queued":
      return {
        tone: "plain",
        sentence: data.queued
          ? "Your message will be sent when the current answer ends"
          : "Your queued message was sent or withdrawn",
      };
    case "conversation.updated":
      return { tone: "plain", sentence: `Your conversation is now called “${text(data.title)}”` };
    case "data.changed":
      return { tone: "info", sentence: `${text(data.server)} changed data through ${text(data.tool)}` };
  }
  const rest = Object.entries(data)
    .filter(([key, value]) => key !== "timestamp" && typeof value !== "object")
    .map(([key, value]) => `${key} ${text(value)}`);
  return { tone: /fail|dead|refus|denied/.test(name) ? "bad" : "plain", sentence: rest.join(", ") || name };
}
