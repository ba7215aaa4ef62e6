import { useState } from "react";
import { useSession } from "../api/session";
import { NotAllowed, Page } from "../ui/Surface";
import { Tabs } from "../ui/Tabs";
import { Members } from "./Members";
import { Users } from "./Users";
import { WorkspaceList } from "./Workspaces";

/** Shows members, workspaces and users. */
export function PeopleScreen() {
  const { workspace, isOrgAdmin, isWorkspaceAdmin } = useSession();
  const [tab, setTab] = useState("members");
  if (!isWorkspaceAdmin) return <NotAllowed title="People" who={`admins of ${workspace.name}`} />;
  return (
    <Page
      title="People"
      about={`Members of ${workspace.name}${isOrgAdmin ? ", and all people and workspaces on this server" : ""}.`}
    >
      <Tabs
        label="People"
        value={tab}
        onChange={setTab}
        tabs={[
          { id: "members", label: "Members", content: () => <Members /> },
          ...(isOrgAdmin
            ? [
                { id: "workspaces", label: "Workspaces", content: () => <WorkspaceList /> },
                { id: "users", label: "Everyone", content: () => <Users /> },
              ]
            : []),
        ]}
      />
    </Page>
  );
}
