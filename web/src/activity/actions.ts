/** Descriptions of the actions in the audit trail. The first pattern that matches applies. Other actions are shown as recorded. */
const phrases: [RegExp, string][] = [
  [/^tools\.call(\.ended)?$/, "called"],
  [/^prompts\.get(\.ended)?$/, "used the prompt"],
  [/^resources\.read(\.ended)?$/, "read the resource"],
  [/^POST \/v1\/auth\/login$/, "logged in with a key"],
  [/^GET \/v1\/auth\/callback/, "logged in at the identity provider"],
  [/^POST \/v1\/auth\/logout$/, "logged out"],
  [/^POST \/v1\/auth\/backchannel-logout$/, "was logged out through the identity provider"],
  [/^POST \/v1\/apps\/(install|import|upload)$/, "installed an app"],
  [/^PATCH \/v1\/apps\/[^/]+$/, "configured"],
  [/^POST \/v1\/apps\/[^/]+\/restart$/, "restarted"],
  [/^POST \/v1\/apps\/[^/]+\/update$/, "updated"],
  [/^POST \/v1\/apps\/[^/]+\/start$/, "started"],
  [/^POST \/v1\/apps\/[^/]+\/stop$/, "stopped"],
  [/^DELETE \/v1\/apps\/[^/]+$/, "uninstalled"],
  [/^POST \/v1\/apps\/[^/]+\/restore$/, "restored"],
  [/^POST \/v1\/accounts$/, "started linking an account"],
  [/^POST \/v1\/accounts\/link$/, "agreed to link an account"],
  [/^GET \/v1\/accounts\/callback/, "linked an account"],
  [/^PATCH \/v1\/accounts\/[^/]+$/, "changed a linked account"],
  [/^DELETE \/v1\/accounts\/[^/]+$/, "unlinked an account"],
  [/^POST \/v1\/approvals\/[^/]+$/, "decided on a waiting call"],
  [/^POST \/v1\/pins\/[^/]+$/, "decided on a changed tool"],
  [/^POST \/v1\/chat(\/stream)?$/, "sent a message"],
  [/^POST \/v1\/chat\/elicitations\/[^/]+$/, "answered an app's question"],
  [/^POST \/v1\/conversations\/import$/, "imported conversations"],
  [/^(POST \/v1\/conversations\/delete|DELETE \/v1\/conversations\/[^/]+)$/, "deleted conversations"],
  [/^PATCH \/v1\/conversations\/[^/]+$/, "renamed a conversation"],
  [/^POST \/v1\/conversations\/[^/]+\/fork$/, "forked a conversation"],
  [/^PATCH \/v1\/users\/[^/]+$/, "changed the role of"],
  [/^DELETE \/v1\/users\/[^/]+$/, "removed"],
  [/^POST \/v1\/users\/[^/]+\/merge$/, "merged another user into"],
  [/^POST \/v1\/workspaces$/, "created a workspace"],
  [/^PATCH \/v1\/workspaces\/[^/]+$/, "changed the workspace"],
  [/^DELETE \/v1\/workspaces\/[^/]+$/, "deleted the workspace"],
  [/^POST \/v1\/workspaces\/[^/]+\/members$/, "added a member to"],
  [/^DELETE \/v1\/workspaces\/[^/]+\/members\/[^/]+$/, "removed a member from"],
  [/^POST \/v1\/keys$/, "created an API key"],
  [/^DELETE \/v1\/keys\/[^/]+$/, "revoked an API key"],
  [/^PATCH \/v1\/models$/, "changed the models"],
];

/** The target in the record of a dry run. */
export const dryRun = "dry run";

/** Returns a description of an action, or null if there is none. */
export function phraseOf(action: string): string | null {
  return phrases.find(([pattern]) => pattern.test(action))?.[1] ?? null;
}
