/** Describes how a client connects to this server. */
export interface Client {
  id: string;
  name: string;
  note: string;
  language: string;
  snippet: (at: Address) => string;
}

export interface Address {
  url: string;
  token: string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);
const headers = (token: string) => (token ? { headers: { Authorization: `Bearer ${token}` } } : {});

export const clients: Client[] = [
  {
    id: "claude-code",
    name: "Claude Code",
    note: "Run this once in a terminal. If the server needs a login, use /mcp in Claude Code to open it in the browser.",
    language: "Terminal",
    snippet: ({ url, token }) =>
      `claude mcp add --transport http ropewalk ${url}${token ? ` \\\n  --header "Authorization: Bearer ${token}"` : ""}`,
  },
  {
    id: "claude",
    name: "Claude",
    note: "Settings → Connectors → Add custom connector. Enter the address and log in through the browser. The server must be reachable from the internet over HTTPS.",
    language: "Address",
    snippet: ({ url }) => url,
  },
  {
    id: "chatgpt",
    name: "ChatGPT",
    note: "Settings → Connectors → Create (developer mode). Enter the address and log in through the browser. The server must be reachable from the internet over HTTPS.",
    language: "Address",
    snippet: ({ url }) => url,
  },
  {
    id: "cursor",
    name: "Cursor",
    note: "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json in a project.",
    language: "mcp.json",
    snippet: ({ url, token }) => json({ mcpServers: { ropewalk: { url, ...headers(token) } } }),
  },
  {
    id: "vscode",
    name: "VS Code",
    note: "Add this to .vscode/mcp.json in a project, or to your user configuration (command MCP: Open User Configuration).",
    language: "mcp.json",
    snippet: ({ url, token }) => json({ servers: { ropewalk: { type: "http", url, ...headers(token) } } }),
  },
  {
    id: "codex",
    name: "Codex",
    note: "Add this to ~/.codex/config.toml. Codex reads the token from the environment.",
    language: "config.toml",
    snippet: ({ url, token }) =>
      `[mcp_servers.ropewalk]\nurl = "${url}"${token ? '\nbearer_token_env_var = "ROPEWALK_TOKEN"' : ""}`,
  },
  {
    id: "stdio",
    name: "Only stdio",
    note: "For clients that can only start a program. mcp-remote forwards messages, and opens the browser if a login is needed.",
    language: "JSON",
    snippet: ({ url, token }) =>
      json({
        mcpServers: {
          ropewalk: {
            command: "npx",
            args: ["-y", "mcp-remote", url, ...(token ? ["--header", `Authorization: Bearer ${token}`] : [])],
          },
        },
      }),
  },
  {
    id: "inspector",
    name: "MCP Inspector",
    note: "For trying out the endpoint manually.",
    language: "Terminal",
    snippet: ({ url }) => `npx @modelcontextprotocol/inspector --transport http --server-url ${url}`,
  },
  {
    id: "typescript",
    name: "TypeScript",
    note: "This uses the official SDK.",
    language: "client.ts",
    snippet: ({ url, token }) => `import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "my-agent", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("${url}")${token ? `, {\n  requestInit: { headers: { Authorization: "Bearer ${token}" } },\n}` : ""}));
console.log(await client.listTools());`,
  },
  {
    id: "curl",
    name: "curl",
    note: "This uses the plain HTTP API.",
    language: "Terminal",
    snippet: ({ url, token }) =>
      `curl ${new URL("/v1/apps", url).href}${token ? ` \\\n  -H "Authorization: Bearer ${token}"` : ""}`,
  },
];
