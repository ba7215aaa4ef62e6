import type { Schemas } from "../api/client";
import { ApiError } from "../api/http";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Select } from "../ui/Field";
import { Failure } from "../ui/Surface";
import type { Installation } from "./installation";

type Access = Schemas["Access"];
export type Asked = Schemas["PermissionRequest"];
export type Decisions = Schemas["PermissionChange"];

/** The answers to questions: an allowed access, or null for no. A question without an entry has not been answered. */
export type Answers = Record<string, Access | null>;

const keyOf = (ask: Asked) => `${ask.kind} ${ask.target}`;

/** Returns the permissions that an installation asks for, if it failed because of them. */
export function askedBy(error: unknown): Asked[] | null {
  if (!(error instanceof ApiError) || error.code !== "permissions_required") return null;
  return askedIn(error.details);
}

export const askedIn = (details: unknown): Asked[] | null =>
  (details as { missing?: Asked[] } | undefined)?.missing ?? null;

export const allAnswered = (asked: Asked[], answers: Answers) =>
  asked.every((ask) => answers[keyOf(ask)] !== undefined);

/** Adds the answers to earlier decisions. */
export function decided(before: Decisions, asked: Asked[], answers: Answers): Decisions {
  const allow = asked.map((ask) => answers[keyOf(ask)]).filter((access) => !!access);
  const deny = asked.filter((ask) => answers[keyOf(ask)] === null).map(({ kind, target }) => ({ kind, target }));
  return { allow: [...(before.allow ?? []), ...allow], deny: [...(before.deny ?? []), ...deny] };
}

const words: Record<string, string> = {
  read: "read",
  write: "read and write",
  net: "connect to",
};

function choicesOf(ask: Asked): [string, Access][] {
  const kinds = (ask.choice?.length ? ask.choice : [ask.kind]) as Access["kind"][];
  const own = kinds.map((kind): [string, Access] => [
    kind === "net" ? "Yes" : `Yes, ${words[kind] ?? kind} it`,
    { kind, target: ask.target },
  ]);
  return ask.also ? [...own, [`Yes, and read everything in ${ask.also.target}`, ask.also]] : own;
}

interface Props {
  app: string;
  asked: Asked[];
  answers: Answers;
  onAnswers: (answers: Answers) => void;
}

/** Shows one question for each permission that an app asks for. Nothing is preselected. */
export function Questions({ app, asked, answers, onAnswers }: Props) {
  return asked.map((ask) => {
    const choices = choicesOf(ask);
    const answer = answers[keyOf(ask)];
    const chosen =
      answer === undefined
        ? ""
        : answer === null
          ? "no"
          : String(choices.findIndex(([, access]) => access.kind === answer.kind && access.target === answer.target));
    return (
      <Field
        key={keyOf(ask)}
        label={`${app} wants to ${words[ask.kind] ?? ask.kind} ${ask.target}${ask.kind === "net" ? " on the server's machine" : ""}.`}
        hint={`Requested by ${ask.reason}.`}
        required
      >
        {(props) => (
          <Select
            {...props}
            value={chosen}
            onChange={(e) =>
              onAnswers({
                ...answers,
                [keyOf(ask)]: e.target.value === "no" ? null : choices[Number(e.target.value)]![1],
              })
            }
          >
            <option value="" disabled>
              Choose
            </option>
            <option value="no">No</option>
            {choices.map(([label], i) => (
              <option key={label} value={i}>
                {label}
              </option>
            ))}
          </Select>
        )}
      </Field>
    );
  });
}

/** Asks for permissions that an app requires before it is installed. */
export function QuestionsStep({ install, onClose }: { install: Installation; onClose: () => void }) {
  const asked = install.asked ?? [];
  return (
    <Dialog
      title={`Permissions for ${install.label}`}
      onClose={onClose}
      onSubmit={install.decide}
      footer={
        <>
          <Button onClick={install.back}>Back</Button>
          <Button type="submit" look="primary" busy={install.busy} disabled={!allAnswered(asked, install.answers)}>
            Install
          </Button>
        </>
      }
    >
      <p>The app runs in a sandbox and can only use what you allow. You can change this later on the app’s page.</p>
      <Questions app={install.label} asked={asked} answers={install.answers} onAnswers={install.answer} />
      {install.error && <Failure error={install.error} />}
    </Dialog>
  );
}
