import { useQuery } from "@tanstack/react-query";
import { api, take, type Schemas } from "../api/client";
import { useSession } from "../api/session";
import { CopyButton } from "../ui/Code";
import { plural } from "../ui/format";
import { Badge, Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";

type View = Schemas["ToolView"];

/** Returns a short description of what a view shows and hides. */
function effect({ include = [], exclude = [], default: rest }: View) {
  const shown =
    include.length === 0 && rest === "allow" ? "shows all tools" : `${plural(include.length, "rule")} to show`;
  return exclude.length > 0 ? `${shown}, ${plural(exclude.length, "rule")} to hide` : shown;
}

/** Returns the roles and groups that are limited to the view. */
function bound({ roles = [], groups = [] }: View) {
  return [...roles.map((role) => `role ${role}`), ...groups.map((group) => `group ${group}`)].join(", ") || "nobody";
}

/** Shows the workspace's views, with their addresses and the roles and groups that are limited to them. */
export function Views({ url }: { url: string }) {
  const { workspace } = useSession();
  const views = useQuery({
    queryKey: ["views", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/views"))).views,
  });
  return (
    <Card flush title="Views">
      {views.isLoadingError ? (
        <Failure error={views.error} />
      ) : views.isPending ? (
        <Skeleton />
      ) : views.data.length === 0 ? (
        <Empty title="No views yet">
          A view is a selection of the tools with its own address. Create one with <code>ropewalk view set</code>.
        </Empty>
      ) : (
        <Table
          label="Views"
          rows={views.data}
          keyOf={(v) => v.name}
          columns={[
            {
              title: "Name",
              cell: (v) => (
                <>
                  <b>{v.name}</b> {v.declared && <Badge>configuration</Badge>}
                  <small>{effect(v)}</small>
                </>
              ),
            },
            {
              title: "Limited to this view",
              cell: bound,
            },
            {
              title: "Address",
              cell: (v) => (
                <>
                  <code>{`${url}/v/${v.name}`}</code> <CopyButton text={`${url}/v/${v.name}`} />
                </>
              ),
            },
          ]}
        />
      )}
    </Card>
  );
}
