import { Activity, ChartNoAxesColumn, Hammer, LayoutGrid, MessageSquare, Plug, Server, ShieldCheck, Users } from "lucide-react";
import type { ComponentType } from "react";
import type { Session } from "../api/session";

export interface Section {
  to: "/chat" | "/apps" | "/tools" | "/approvals" | "/activity" | "/usage" | "/people" | "/system" | "/connect";
  name: string;
  icon: ComponentType<{ "aria-hidden": "true" }>;
  group: "Work" | "Watch" | "Manage";
  /** The endpoint without which there is nothing to show; several: any of them. */
  needs: string[];
  /** Who sees it. */
  allowed?: (session: Session) => boolean;
}

/** The navigation: a new screen is a line here and a route. */
export const sections: Section[] = [
  { to: "/chat", name: "Chat", icon: MessageSquare, group: "Work", needs: ["post /v1/chat/stream"] },
  { to: "/apps", name: "Apps", icon: LayoutGrid, group: "Work", needs: ["get /v1/apps"] },
  { to: "/tools", name: "Tools", icon: Hammer, group: "Work", needs: ["get /v1/tools"] },
  { to: "/approvals", name: "Approvals", icon: ShieldCheck, group: "Watch", needs: ["get /v1/approvals", "get /v1/pins"] },
  { to: "/activity", name: "Activity", icon: Activity, group: "Watch", needs: ["get /v1/events"] },
  { to: "/usage", name: "Usage", icon: ChartNoAxesColumn, group: "Watch", needs: ["get /v1/usage"] },
  { to: "/people", name: "People", icon: Users, group: "Manage", needs: ["get /v1/workspaces/{}/members"], allowed: (s) => s.isWorkspaceAdmin },
  { to: "/system", name: "System", icon: Server, group: "Manage", needs: ["get /v1/health"], allowed: (s) => s.isOrgAdmin },
  { to: "/connect", name: "Connect", icon: Plug, group: "Manage", needs: ["get /v1/workspace"] },
];
