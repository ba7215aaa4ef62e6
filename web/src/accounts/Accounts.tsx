import { useQueryClient } from "@tanstack/react-query";
import { Ellipsis, IdCard, Link2, LogIn, Pencil, Star, Unlink } from "lucide-react";
import { useState } from "react";
import { usePeople } from "../activity/audit";
import { useApps } from "../api/apps";
import { api, take, type App, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Dialog";
import { ago, moment } from "../ui/format";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { Badge, Card, Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { toast, toastError } from "../ui/Toast";
import { useAccounts, type Account } from "./data";
import { LinkAccount, RenameAccount } from "./Dialogs";

/** Shows the person's accounts at remote apps. */
export function AccountsScreen() {
  const { user, isWorkspaceAdmin } = useSession();
  const apps = useApps();
  const accounts = useAccounts();
  const failed = [apps, accounts].find((query) => query.isLoadingError);
  const takers = apps.data?.filter((app) => app.auth) ?? [];
  const others = accounts.data?.filter((a) => a.owner !== null && a.owner !== user.id) ?? [];
  return (
    <Page title="Accounts" about="Your accounts at remote apps. Each tool call acts as one of these accounts.">
      {failed ? (
        <Failure error={failed.error} />
      ) : apps.isPending || accounts.isPending ? (
        <Skeleton lines={4} />
      ) : takers.length === 0 ? (
        <Card flush>
          <Empty icon={<IdCard aria-hidden="true" />} title="No app needs an account">
            Only remote apps that use OAuth need accounts.{" "}
            {isWorkspaceAdmin ? "Install one from its URL." : "A workspace admin can install one."}
          </Empty>
        </Card>
      ) : (
        takers.map((app) => (
          <AccountsAt
            key={app.name}
            app={app}
            own={accounts.data!.filter((a) => a.app === app.name && (a.owner === null || a.owner === user.id))}
          />
        ))
      )}
      {isWorkspaceAdmin && others.length > 0 && <Others accounts={others} />}
    </Page>
  );
}

type Open = { kind: "link" } | { kind: "again" | "rename" | "unlink"; account: Account };

/** Shows the accounts at one app, with the actions for each. */
function AccountsAt({ app, own }: { app: App; own: Account[] }) {
  const { isWorkspaceAdmin } = useSession();
  const change = useAccountChange();
  const [open, setOpen] = useState<Open | null>(null);
  const shared = app.auth === "shared";
  const mayChange = !shared || isWorkspaceAdmin;
  const close = () => setOpen(null);
  return (
    <Card
      flush
      title={
        <>
          {app.name} {shared && <Badge title="Everyone in the workspace uses the same account">shared</Badge>}
        </>
      }
      actions={
        mayChange && (
          <Button small look={own.length === 0 ? "primary" : "plain"} onClick={() => setOpen({ kind: "link" })}>
            <Link2 aria-hidden="true" />
            {own.length === 0 ? "Link an account" : "Link another"}
          </Button>
        )
      }
    >
      {own.length === 0 ? (
        <Empty icon={<IdCard aria-hidden="true" />} title="No account is linked">
          {shared
            ? "A workspace admin has to link the account that everyone will use."
            : "Link an account to use this app’s tools."}
        </Empty>
      ) : (
        <Table
          label={`Accounts at ${app.name}`}
          rows={own}
          keyOf={(a) => a.id}
          columns={[
            {
              title: "Account",
              cell: (a) => (
                <>
                  <b>{a.name}</b> {a.default && <Badge tone="accent">default</Badge>}
                  <small>{hostOf(a.issuer)}</small>
                </>
              ),
            },
            { title: "State", cell: (a) => <State account={a} /> },
            {
              title: "",
              number: true,
              cell: (a) =>
                mayChange && (
                  <Menu
                    trigger={
                      <Button small look="quiet" label={`More actions for ${a.name} at ${app.name}`}>
                        <Ellipsis aria-hidden="true" />
                      </Button>
                    }
                  >
                    <MenuItem
                      icon={<Star aria-hidden="true" />}
                      disabled={a.default}
                      onSelect={() =>
                        void change(`${a.name} is now the default account at ${app.name}.`, () =>
                          patch(a, { default: true }),
                        )
                      }
                    >
                      Make default
                    </MenuItem>
                    <MenuItem
                      icon={<Pencil aria-hidden="true" />}
                      onSelect={() => setOpen({ kind: "rename", account: a })}
                    >
                      Rename…
                    </MenuItem>
                    <MenuItem
                      icon={<LogIn aria-hidden="true" />}
                      onSelect={() => setOpen({ kind: "again", account: a })}
                    >
                      Log in again…
                    </MenuItem>
                    <MenuLine />
                    <MenuItem
                      icon={<Unlink aria-hidden="true" />}
                      danger
                      onSelect={() => setOpen({ kind: "unlink", account: a })}
                    >
                      Unlink…
                    </MenuItem>
                  </Menu>
                ),
            },
          ]}
        />
      )}
      {open?.kind === "link" && <LinkAccount app={app.name} own={own} onClose={close} />}
      {open?.kind === "again" && <LinkAccount app={app.name} own={own} again={open.account} onClose={close} />}
      {open?.kind === "rename" && (
        <RenameAccount
          account={open.account}
          own={own}
          onClose={close}
          onRename={(name) => change(`The account is now called ${name}.`, () => patch(open.account, { name }))}
        />
      )}
      {open?.kind === "unlink" && <UnlinkAccount account={open.account} onClose={close} />}
    </Card>
  );
}

/** Shows other people's accounts in the workspace. Admins can unlink them, but never see tokens. */
function Others({ accounts }: { accounts: Account[] }) {
  const people = usePeople();
  const [unlinking, setUnlinking] = useState<Account | null>(null);
  const nameOf = (a: Account) => people.get(a.owner!) ?? a.owner!;
  return (
    <Card flush title="Other people's accounts">
      <Table
        label="Other people's accounts"
        rows={accounts}
        keyOf={(a) => a.id}
        columns={[
          {
            title: "Person",
            cell: (a) => (
              <>
                {nameOf(a)}
                <small>{hostOf(a.issuer)}</small>
              </>
            ),
          },
          {
            title: "Account",
            cell: (a) => (
              <>
                <b>{a.name}</b> at {a.app}
              </>
            ),
          },
          { title: "State", cell: (a) => <State account={a} /> },
          {
            title: "",
            number: true,
            cell: (a) => (
              <Button
                small
                look="quiet"
                label={`Unlink ${nameOf(a)}'s account ${a.name} at ${a.app}`}
                onClick={() => setUnlinking(a)}
              >
                <Unlink aria-hidden="true" />
              </Button>
            ),
          },
        ]}
      />
      {unlinking && <UnlinkAccount account={unlinking} person={nameOf(unlinking)} onClose={() => setUnlinking(null)} />}
    </Card>
  );
}

const State = ({ account: a }: { account: Account }) => (
  <>
    {a.state === "active" ? (
      <Badge tone="good" dot>
        linked
      </Badge>
    ) : (
      <Badge tone="warn" dot>
        login needed
      </Badge>
    )}
    <small title={moment(a.linkedAt)}>linked {ago(a.linkedAt)}</small>
  </>
);

function UnlinkAccount({ account: a, person, onClose }: { account: Account; person?: string; onClose: () => void }) {
  const change = useAccountChange();
  const unlink = () => {
    onClose();
    void change(`The account ${a.name} has been unlinked from ${a.app}.`, () =>
      take(api.DELETE("/v1/accounts/{id}", { params: { path: { id: a.id } } })),
    );
  };
  return (
    <Confirm
      title={`Unlink ${person ? `${person}’s account ` : ""}${a.name}?`}
      action="Unlink"
      onClose={onClose}
      onConfirm={unlink}
    >
      <p>
        {a.app} will no longer be called with this account. Its tokens are revoked at {hostOf(a.issuer)}. The account
        can be linked again later.
      </p>
    </Confirm>
  );
}

/** Makes a change and shows the outcome. */
function useAccountChange() {
  const queries = useQueryClient();
  const change = async (result: string, make: () => Promise<unknown>): Promise<void> => {
    try {
      await make();
      toast(result);
    } catch (error) {
      toastError(error);
    }
    refresh(queries, ["accounts"]);
  };
  return change;
}

const patch = (a: Account, body: Schemas["AccountPatch"]) =>
  take(api.PATCH("/v1/accounts/{id}", { params: { path: { id: a.id } }, body }));

const hostOf = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);
