import { usePeople } from "../activity/audit";
import { useSession } from "../api/session";
import { useAccounts } from "./data";

/** Shows the account with this id, and its owner. */
export function AccountOf({ id }: { id: string }) {
  const { user } = useSession();
  const people = usePeople();
  const { data = [] } = useAccounts();
  const account = data.find((a) => a.id === id);
  if (!account) return "an account"; // another person's account, which only admins can see
  return (
    <>
      {account.owner === user.id ? "your account" : "the account"} <b>{account.name}</b>
      {account.owner && account.owner !== user.id && ` of ${people.get(account.owner) ?? account.owner}`}
    </>
  );
}
