# Claude Code
claude mcp add --transport stdio --scope user --env AIRTABLE_API_KEY=$AIRTABLE_API_KEY airtable -- npx -y airtable-mcp-server
claude mcp add --transport http notion https://mcp.notion.com/mcp --header "Authorization: Bearer ${NOTION_TOKEN}"
$ claude mcp add -s project git -e GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com \
    -- uvx mcp-server-git --repository /srv/repo
claude mcp add-json weather '{"type":"stdio","command":"uvx","args":["weather-mcp==0.3.1"]}'
# others
codex mcp add docs --env DOCS_TOKEN=secret -- npx -y "@acme/docs-mcp@2.1.0"
codex mcp add figma --url https://mcp.figma.com/mcp --bearer-token-env-var FIGMA_TOKEN
gemini mcp add -t sse -H "X-Key: abc" --trust --include-tools search,read linear https://mcp.linear.app/sse
droid mcp add playwright "npx -y @playwright/mcp@0.0.40"
amp mcp add context7 --header CONTEXT7_API_KEY=$CONTEXT7_API_KEY https://mcp.context7.com/mcp
q mcp add --name memory --command npx --args "-y,@modelcontextprotocol/server-memory"
code --add-mcp '{"name":"everything","command":"npx","args":["-y","@modelcontextprotocol/server-everything"]}'
