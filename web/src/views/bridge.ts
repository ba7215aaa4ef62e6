import "./jitless";
import { AppBridge, PostMessageTransport, type McpUiHostContext } from "@modelcontextprotocol/ext-apps/app-bridge";
import { toJson } from "../api/digits";
import { api, take, type ToolResult } from "../api/client";
import type { Tool } from "../api/tools";
import { readView, type ViewResource } from "./resource";

export interface BridgeOptions {
  frame: HTMLIFrameElement;
  server: string;
  version: string;
  view: ViewResource;
  tool?: Tool;
  input?: Record<string, unknown>;
  result?: ToolResult;
  granted: ViewResource["meta"]["permissions"];
  onHeight: (height: number) => void;
  /** Called when a tool call starts. The returned function is called when the tool call ends. Calls may overlap. */
  onCall: (tool: string) => (ok: boolean) => void;
  onLink: (url: string) => Promise<boolean>;
  onMessage?: (text: string) => void;
}

/** Converts a value for a view. The scripts of views need ordinary numbers. */
const plain = <T>(value: T): T => JSON.parse(toJson(value)) as T;

/** Returns the facts about this page that views receive, such as its theme and size. */
function context(frame: HTMLIFrameElement, tool?: Tool): McpUiHostContext {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const chosen = document.documentElement.dataset.theme;
  return {
    theme: (chosen ?? (dark ? "dark" : "light")) as "light" | "dark",
    displayMode: "inline",
    availableDisplayModes: ["inline"],
    containerDimensions: { width: frame.clientWidth, maxHeight: 800 },
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    platform: "web",
    ...(tool && {
      toolInfo: { tool: plain({ ...tool, inputSchema: { type: "object", ...tool.inputSchema } }) as never },
    }),
  };
}

/** Connects a view to this page. The view can only call tools of its own app. */
export async function connectView(o: BridgeOptions): Promise<() => void> {
  const target = o.frame.contentWindow;
  if (!target) throw new Error("The view's frame no longer exists.");
  const bridge = new AppBridge(
    null,
    { name: "Ropewalk", version: o.version },
    {
      openLinks: {},
      serverTools: {},
      serverResources: {},
      logging: {},
      ...(o.onMessage && { message: { text: {} } }),
    },
    { hostContext: context(o.frame, o.tool) },
  );
  bridge.onsandboxready = () =>
    void bridge.sendSandboxResourceReady({ html: o.view.text, csp: o.view.meta.csp, permissions: o.granted });
  bridge.oninitialized = () => {
    void bridge.sendToolInput({ arguments: plain(o.input ?? {}) });
    if (o.result) void bridge.sendToolResult(plain(o.result) as never);
  };
  bridge.onsizechange = ({ height }) => {
    if (height) o.onHeight(Math.min(Math.max(Math.ceil(height), 48), 800));
  };
  bridge.oncalltool = async ({ name, arguments: args }) => {
    const bare = name.startsWith(`${o.server}__`) ? name.slice(o.server.length + 2) : name;
    const done = o.onCall(bare);
    try {
      const { result: _, ...answer } = await take(
        api.POST("/v1/tools/call", { body: { server: o.server, tool: bare, arguments: args ?? {} } }),
      );
      done(!answer.isError);
      return answer as never;
    } catch (error) {
      done(false);
      throw error;
    }
  };
  bridge.onreadresource = async ({ uri }) => {
    if (!uri.startsWith("ui://")) throw new Error("a view can only read ui:// resources of its own app");
    const { text, mimeType } = await readView(o.server, uri);
    return { contents: [{ uri, mimeType, text }] };
  };
  bridge.onopenlink = async ({ url }) => ((await o.onLink(url)) ? {} : { isError: true });
  bridge.onmessage = async ({ content }) => {
    const text = content
      .map((part) => (part.type === "text" ? part.text : ""))
      .join("\n")
      .trim();
    if (!o.onMessage || !text) return { isError: true };
    o.onMessage(text);
    return {};
  };
  await bridge.connect(new PostMessageTransport(target, target));
  return () => {
    void bridge
      .teardownResource({})
      .catch(() => undefined)
      .finally(() => void bridge.close());
  };
}
