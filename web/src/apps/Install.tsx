import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "../api/session";
import { Dialog } from "../ui/Dialog";
import { Tabs } from "../ui/Tabs";
import { CredentialsStep } from "./CredentialsStep";
import { FromConfig } from "./FromConfig";
import { FromFile } from "./FromFile";
import { FromPackage, FromPath, FromURL } from "./FromReference";
import { FromRegistry } from "./FromRegistry";
import { useInstall } from "./installation";
import { QuestionsStep } from "./Questions";

interface Props {
  tab: string;
  onTab: (tab: string) => void;
  onClose: () => void;
}

/** Installs an app. It asks for the source first and then for missing settings. */
export default function Install({ tab, onTab, onClose }: Props) {
  const { isOrgAdmin } = useSession();
  const navigate = useNavigate();
  const [done, setDone] = useState(false);
  const install = useInstall((app) => {
    setDone(true);
    void navigate({ to: "/apps/$name", params: { name: app.name }, search: {} });
  });
  if (done) return null;
  if (install.missing) return <CredentialsStep install={install} onClose={onClose} />;
  if (install.asked) return <QuestionsStep install={install} onClose={onClose} />;
  const tabs = [
    { id: "registry", label: "Registry", content: () => <FromRegistry install={install} onTab={onTab} /> },
    ...(isOrgAdmin ? [{ id: "package", label: "Package", content: () => <FromPackage install={install} /> }] : []),
    { id: "url", label: "Address", content: () => <FromURL install={install} /> },
    ...(isOrgAdmin ? [{ id: "file", label: "File", content: () => <FromFile install={install} /> }] : []),
    { id: "config", label: "Paste", content: () => <FromConfig onDone={onClose} /> },
    ...(isOrgAdmin ? [{ id: "path", label: "Server path", content: () => <FromPath install={install} /> }] : []),
  ];
  const shown = tabs.some((t) => t.id === tab) ? tab : "registry";
  return (
    <Dialog title="Install an app" wide onClose={onClose}>
      <Tabs label="Where the app comes from" tabs={tabs} value={shown} onChange={onTab} />
    </Dialog>
  );
}
