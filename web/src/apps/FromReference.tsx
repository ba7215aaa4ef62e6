import { useState, type ReactNode } from "react";
import { Button } from "../ui/Button";
import { Field, Input, Select } from "../ui/Field";
import { Failure } from "../ui/Surface";
import type { Installation } from "./installation";
import css from "./apps.module.css";

interface FormProps {
  install: Installation;
  ready: boolean;
  onSubmit: () => void;
  children: ReactNode;
}

function SourceForm({ install, ready, onSubmit, children }: FormProps) {
  return (
    <form
      style={{ display: "grid", gap: 16 }}
      onSubmit={(e) => {
        e.preventDefault();
        if (ready) onSubmit();
      }}
    >
      {children}
      {install.error && <Failure error={install.error} />}
      <div>
        <Button type="submit" look="primary" busy={install.busy} disabled={!ready}>
          {install.busy ? "Installing…" : "Install"}
        </Button>
      </div>
    </form>
  );
}

/** Installs a package from npm or PyPI. */
export function FromPackage({ install }: { install: Installation }) {
  const [kind, setKind] = useState("npm");
  const [name, setName] = useState("");
  const [args, setArgs] = useState("");
  const submit = () => {
    const words = args.match(/"[^"]*"|\S+/g)?.map((word) => word.replace(/^"(.*)"$/, "$1"));
    install.begin(name.trim(), {
      ...(kind === "npm" ? { npm: name.trim() } : { pypi: name.trim() }),
      ...(words && { args: words }),
    });
  };
  return (
    <SourceForm install={install} ready={name.trim() !== ""} onSubmit={submit}>
      <div className={css.pair}>
        <Field label="Package index">
          {(props) => (
            <Select {...props} value={kind} onChange={(e) => setKind(e.target.value)}>
              <option value="npm">npm</option>
              <option value="pypi">PyPI</option>
            </Select>
          )}
        </Field>
        <Field label="Package" required hint="The name, or name@version for a certain version">
          {(props) => (
            <Input
              {...props}
              mono
              value={name}
              onChange={(e) => setName(e.target.value)}
              placeholder={kind === "npm" ? "@scope/server" : "mcp-server"}
              spellCheck={false}
            />
          )}
        </Field>
      </div>
      <Field
        label="Arguments"
        hint={
          'For example, the folder for a file server. Separate arguments with spaces, and put "…" around one that contains spaces.'
        }
      >
        {(props) => <Input {...props} mono value={args} onChange={(e) => setArgs(e.target.value)} spellCheck={false} />}
      </Field>
    </SourceForm>
  );
}

/** Connects a remote MCP server. */
export function FromURL({ install }: { install: Installation }) {
  const [url, setURL] = useState("");
  const [name, setName] = useState("");
  const [auth, setAuth] = useState("none");
  const [secret, setSecret] = useState("");
  const [header, setHeader] = useState("X-API-Key");
  const submit = () => {
    const how =
      auth === "bearer"
        ? { type: "bearer" as const, token: secret }
        : { type: "header" as const, name: header, value: secret };
    install.begin(name || url, {
      url: url.trim(),
      ...(name && { serverName: name }),
      ...(auth !== "none" && { transport: { type: "streamable-http" as const, auth: how } }),
    });
  };
  return (
    <SourceForm
      install={install}
      ready={/^https?:\/\/.+/.test(url.trim()) && (auth === "none" || secret !== "")}
      onSubmit={submit}
    >
      <Field label="Address of the MCP server" required>
        {(props) => (
          <Input
            {...props}
            type="url"
            mono
            value={url}
            onChange={(e) => setURL(e.target.value)}
            placeholder="https://example.com/mcp"
          />
        )}
      </Field>
      <div className={css.pair}>
        <Field
          label="Name"
          hint="Lower-case letters, digits and hyphens. Leave it empty to let the server choose a name."
        >
          {(props) => <Input {...props} value={name} pattern="[a-z0-9\-]*" onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Authentication">
          {(props) => (
            <Select {...props} value={auth} onChange={(e) => setAuth(e.target.value)}>
              <option value="none">None</option>
              <option value="bearer">Bearer token</option>
              <option value="header">Header</option>
            </Select>
          )}
        </Field>
      </div>
      {auth !== "none" && (
        <div className={css.pair}>
          {auth === "header" && (
            <Field label="Header">
              {(props) => <Input {...props} mono value={header} onChange={(e) => setHeader(e.target.value)} />}
            </Field>
          )}
          <Field
            label={auth === "bearer" ? "Token" : "Value"}
            required
            hint="The server stores it and never shows it again."
          >
            {(props) => (
              <Input
                {...props}
                type="password"
                autoComplete="off"
                value={secret}
                onChange={(e) => setSecret(e.target.value)}
              />
            )}
          </Field>
        </div>
      )}
    </SourceForm>
  );
}

/** Installs a bundle from the server's own disk. */
export function FromPath({ install }: { install: Installation }) {
  const [path, setPath] = useState("");
  return (
    <SourceForm
      install={install}
      ready={path.trim() !== ""}
      onSubmit={() => install.begin(path.trim().split("/").pop() ?? path, { path: path.trim() })}
    >
      <Field label="Path on the server" required hint="A bundle’s folder or an .mcpb file. Organization admins only.">
        {(props) => (
          <Input
            {...props}
            mono
            value={path}
            onChange={(e) => setPath(e.target.value)}
            placeholder="/srv/bundles/files"
            spellCheck={false}
          />
        )}
      </Field>
    </SourceForm>
  );
}
