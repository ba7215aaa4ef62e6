import { useState } from "react";
import { api, take } from "../api/client";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Input } from "../ui/Field";
import { Failure, Notice } from "../ui/Surface";
import { toast } from "../ui/Toast";
import { useLinking, type Account } from "./data";

const nameForm = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** Returns why an account cannot have this name, or undefined if the name is allowed. */
function problemWith(name: string, taken: Account[]): string | undefined {
  if (!nameForm.test(name))
    return "Use 1 to 32 lower-case letters, digits and hyphens. Start and end with a letter or digit.";
  return taken.some((a) => a.name === name) ? `An account called ${name} is already linked.` : undefined;
}

interface LinkProps {
  app: string;
  own: Account[];
  /** The account that needs a new login. */
  again?: Account;
  onClose: () => void;
}

/** Opens the page where the person links an account, and waits until it is linked. */
export function LinkAccount({ app, own, again, onClose }: LinkProps) {
  const [name, setName] = useState(again?.name ?? (own.length === 0 ? "main" : ""));
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { page, open } = useLinking(app, name, () => {
    toast(`The account ${name} is now linked at ${app}.`);
    onClose();
  });
  const submit = async () => {
    const found = again ? undefined : problemWith(name, own);
    setProblem(found);
    if (found) return;
    setBusy(true);
    setError(null);
    try {
      const { url } = await take(api.POST("/v1/accounts", { body: { app, name } }));
      open(url);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const title = again ? `Log in again with ${again.name}` : `Link an account at ${app}`;
  if (page) {
    return (
      <Dialog
        title={title}
        onClose={onClose}
        footer={
          <>
            <Button onClick={onClose}>Close</Button>
            <Button look="primary" onClick={() => open(page)}>
              Open the page again
            </Button>
          </>
        }
      >
        <div role="status">
          <Notice>Continue in the new tab and log in there. This page updates once the account is linked.</Notice>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy}>
            Continue
          </Button>
        </>
      }
    >
      {again ? (
        <p>A new tab will open. Log in at {app} with the same account. The new login replaces the old one.</p>
      ) : (
        <NameField value={name} problem={problem} app={app} onChange={setName} />
      )}
      {error !== null && <Failure error={error} />}
    </Dialog>
  );
}

interface RenameProps {
  account: Account;
  own: Account[];
  onRename: (name: string) => Promise<void>;
  onClose: () => void;
}

export function RenameAccount({ account, own, onRename, onClose }: RenameProps) {
  const [name, setName] = useState(account.name);
  const [problem, setProblem] = useState<string>();
  const submit = () => {
    const found = problemWith(
      name,
      own.filter((a) => a.id !== account.id),
    );
    setProblem(found);
    if (found) return;
    onClose();
    if (name !== account.name) void onRename(name);
  };
  return (
    <Dialog
      title={`Rename ${account.name}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Rename
          </Button>
        </>
      }
    >
      <NameField value={name} problem={problem} app={account.app} onChange={setName} />
    </Dialog>
  );
}

const NameField = ({
  value,
  problem,
  app,
  onChange,
}: {
  value: string;
  problem?: string;
  app: string;
  onChange: (name: string) => void;
}) => (
  <Field
    label="Account name"
    required
    error={problem}
    hint={
      <>
        Your name for the account, such as work. It becomes part of tool names, as in{" "}
        <code>
          {app}_{value || "work"}__…
        </code>
      </>
    }
  >
    {(props) => (
      <Input
        {...props}
        mono
        value={value}
        autoCapitalize="none"
        spellCheck={false}
        onChange={(e) => onChange(e.target.value.trim())}
      />
    )}
  </Field>
);
