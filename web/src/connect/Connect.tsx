import { useState } from "react";
import { useSession } from "../api/session";
import { Code, CopyButton } from "../ui/Code";
import { Field, Input } from "../ui/Field";
import { Card, Notice, Page } from "../ui/Surface";
import { clients } from "./clients";
import { Keys } from "./Keys";
import { Views } from "./Views";
import css from "./connect.module.css";

/** Explains how other clients can use the tools of this workspace. */
export function ConnectScreen() {
  const { workspace, facts, isWorkspaceAdmin } = useSession();
  const [chosen, setChosen] = useState(clients[0]!.id);
  const [token, setToken] = useState("");
  const base = facts.baseUrl || location.origin;
  const url = `${base}/mcp/${workspace.id}`;
  const client = clients.find((c) => c.id === chosen)!;
  return (
    <Page title="Connect a client" about={`MCP clients can use all tools of ${workspace.name} at one address.`}>
      <Card title="Address of this workspace">
        <div className={css.address}>
          <code>{url}</code>
          <CopyButton text={url} />
        </div>
        {facts.dev && (
          <Notice tone="warn">
            In dev mode, no token is needed, and only programs on this machine can connect. Set an API key or an
            identity provider before you give other people access.
          </Notice>
        )}
        {!facts.dev && facts.login && (
          <Notice>
            Clients that support OAuth only need the address. They send people to your identity provider. Other clients
            need a token.
          </Notice>
        )}
      </Card>
      <Keys onMade={setToken} />
      <div className={css.split}>
        <div className={css.list} role="group" aria-label="Clients">
          {clients.map((c) => (
            <button
              key={c.id}
              type="button"
              className={css.item}
              aria-pressed={c.id === chosen}
              onClick={() => setChosen(c.id)}
            >
              {c.name}
            </button>
          ))}
        </div>
        <Card title={client.name}>
          <p>{client.note}</p>
          {!facts.dev && (
            <Field
              label="Token or API key"
              hint={`The token is inserted into the text below and does not leave this page.${isWorkspaceAdmin ? " Create one above." : ""}`}
            >
              {(props) => (
                <Input
                  {...props}
                  mono
                  type="password"
                  autoComplete="off"
                  value={token}
                  onChange={(e) => setToken(e.target.value)}
                />
              )}
            </Field>
          )}
          <Code label={client.language} text={client.snippet({ url, token: facts.dev ? "" : token })} wrap />
        </Card>
      </div>
      {isWorkspaceAdmin && <Views url={url} />}
    </Page>
  );
}
