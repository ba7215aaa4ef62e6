import {
  Activity,
  ChartNoAxesColumn,
  Hammer,
  IdCard,
  LayoutGrid,
  MessageSquare,
  Plug,
  Server,
  ShieldCheck,
  Users,
} from "lucide-react";
import type { ComponentType } from "react";
import type { Session } from "../api/session";

export interface Section {
  to:
    | "/chat"
    | "/apps"
    | "/tools"
    | "/approvals"
    | "/activity"
    | "/usage"
    | "/accounts"
    | "/people"
    | "/system"
    | "/connect";
  name: string;
  icon: ComponentType<{ "aria-hidden": "true" }>;
  group: "Work" | "Watch" | "Manage";
  /** Reports who can see the section. By default, everyone can. */
  allowed?: (session: Session) => boolean;
}

/** The entries of the navigation. A new screen needs an entry here and a route. */
export const sections: Section[] = [
  { to: "/chat", name: "Chat", icon: MessageSquare, group: "Work" },
  { to: "/apps", name: "Apps", icon: LayoutGrid, group: "Work" },
  { to: "/tools", name: "Tools", icon: Hammer, group: "Work" },
  { to: "/approvals", name: "Approvals", icon: ShieldCheck, group: "Watch" },
  { to: "/activity", name: "Activity", icon: Activity, group: "Watch" },
  { to: "/usage", name: "Usage", icon: ChartNoAxesColumn, group: "Watch" },
  { to: "/accounts", name: "Accounts", icon: IdCard, group: "Manage" },
  { to: "/people", name: "People", icon: Users, group: "Manage", allowed: (s) => s.isWorkspaceAdmin },
  { to: "/system", name: "System", icon: Server, group: "Manage", allowed: (s) => s.isOrgAdmin },
  { to: "/connect", name: "Connect", icon: Plug, group: "Manage" },
];
