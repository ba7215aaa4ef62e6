// A real OpenID provider on loopback for tests. Run node oidc-provider.mjs in the folder that contains node_modules. It prints
// one line, {"issuer": …}, and exits when stdin ends. It understands these lines on stdin:
//
//   rotate       use a new signing key
//   logouts      print the logout tokens that it has sent
//   renewals     print how many refresh tokens it has exchanged and how many grants it has revoked
//   close alice  close that account without sending a logout token
//
// Clients: "app" and "ropewalk" (public, authorization code with PKCE), "confidential" (authorization code, secret
// "confidential-secret-0123456789"; logouts are sent to /v1/auth/backchannel-logout) and "machine" (client
// credentials, secret "machine-secret-0123456789"); others may register.
//
// By default, a login has no prompts. The account is the one in login_hint, or else in the cookie "account", or else alice, and
// everyone is an admin of org_1. With the argument "form", a page asks for the account, and only alice is an admin. With the
// argument "accounts", the provider issues and rotates refresh tokens, and access tokens last for the number of seconds in
// the next argument. It then also issues codes for logins on other devices (RFC 8628), and binds tokens to a key if the
// client proves, with a nonce, that it has one (DPoP). Access tokens for a resource are JWTs, which the provider
// introspects (RFC 7662) and revokes (RFC 7009).
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

console.info = console.warn = console.error; // for the provider's notices; stdout is only for results

const installed = createRequire(process.cwd() + '/').resolve('oidc-provider');
const { Provider } = await import(pathToFileURL(installed));

const callback = process.argv[2] ?? 'http://127.0.0.1:1/v1/auth/callback';
const form = process.argv[3] === 'form';
const accounts = process.argv[3] === 'accounts';
const accessTokenTTL = Number(process.argv[4] ?? 600);
const logouts = [];
const closed = new Set();
const tokens = []; // access tokens that are JWTs
const roles = (id) => (!form || id === 'alice' ? ['staff-admin'] : []);
let generation = 0;
let renewals = 0;
let revoked = 0;

function signingKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: `key-${++generation}`, use: 'sig', alg: 'RS256' };
}

function build(issuer) {
  const provider = new Provider(issuer, {
    jwks: { keys: [signingKey()] },
    cookies: { keys: ['a-key-for-cookies-of-a-test'] },
    clients: [
      ...['app', 'ropewalk'].map((client_id) => ({
        client_id, application_type: 'native', token_endpoint_auth_method: 'none',
        redirect_uris: [callback], response_types: ['code'], grant_types: ['authorization_code'],
      })),
      {
        client_id: 'confidential', client_secret: 'confidential-secret-0123456789', application_type: 'native',
        redirect_uris: [callback], response_types: ['code'], grant_types: ['authorization_code'],
        backchannel_logout_uri: new URL('/v1/auth/backchannel-logout', callback).href, backchannel_logout_session_required: true,
      },
      {
        client_id: 'machine', client_secret: 'machine-secret-0123456789',
        redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
      },
    ],
    scopes: ['openid', 'profile', 'email', 'tools', ...(accounts ? ['offline_access'] : [])],
    ...(accounts ? { issueRefreshToken: async () => true, rotateRefreshToken: true } : {}),
    claims: { openid: ['sub', 'org_id', 'roles'], profile: ['name'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: form, // with the form, only UserInfo has name and email
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true }, // for unknown clients, as in MCP
      backchannelLogout: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      ...(accounts ? { deviceFlow: { enabled: true }, dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true } } : {}),
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'tools', audience: resource, accessTokenTTL, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: (_, token) => ({ org_id: 'org_1', roles: roles(token.accountId) }),
    formats: { customizers: { jwt: (_, token, { payload }) => keep(token, payload) } },
    findAccount: (_, id) => closed.has(id) ? undefined : ({
      accountId: id,
      claims: () => ({
        sub: id, name: id[0].toUpperCase() + id.slice(1), email: `${id}@example.com`, email_verified: true, org_id: 'org_1', roles: roles(id),
      }),
    }),
    fetch: (url, { dispatcher, ...options }) => { // drops the dispatcher, which refuses loopback addresses
      if (options.body instanceof URLSearchParams && options.body.has('logout_token')) logouts.push(options.body.get('logout_token'));
      return fetch(url, options);
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  });
  provider.on('grant.success', (ctx) => { if (ctx.oidc.params.grant_type === 'refresh_token') renewals++; });
  provider.on('grant.revoked', () => { revoked++; });
  provider.use(async (ctx, next) => {
    if (ctx.path === '/token/introspection' || ctx.path === '/token/revocation') ctx.req.body = await formOf(ctx.req);
    return next();
  });
  const standard = provider.callback();
  return async (req, res) => {
    if (!req.url.startsWith('/interaction/')) return standard(req, res);
    try {
      const details = await provider.interactionDetails(req, res);
      const account = form ? new URL(req.url, issuer).searchParams.get('account') : details.params.login_hint ?? /(?:^|; )account=(\w+)/.exec(req.headers.cookie)?.[1] ?? 'alice';
      if (details.prompt.name === 'login' && !account) {
        res.writeHead(200, { 'content-type': 'text/html' }).end('<title>Sign in</title><form><label>Account <input name="account"></label><button>Sign in</button></form>');
        return;
      }
      await provider.interactionFinished(req, res, await consent(provider, details, account));
    } catch (error) {
      res.writeHead(500).end(String(error));
    }
  };
}

// keep stores a JWT by its jti, as the provider stores opaque tokens, because it does not store JWTs itself. The JWT names the
// session at the provider, as introspecting an opaque token would.
async function keep(token, payload) {
  const { iat, exp } = payload;
  const stored = { iat, exp };
  if (token.sid) payload.sid = token.sid;
  for (const name of token.constructor.IN_PAYLOAD) stored[name] ??= token[name];
  await token.adapter.upsert(token.jti, stored, exp - iat);
  tokens.push(token);
}

// formOf returns the form of a request about a token, with a JWT replaced by its jti.
async function formOf(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
  const payload = fields.token?.split('.')[1];
  if (payload) fields.token = JSON.parse(Buffer.from(payload, 'base64url')).jti;
  return fields;
}

// close closes an account: its tokens are revoked, and the provider no longer knows the name.
async function close(account) {
  closed.add(account);
  for (const token of tokens) {
    if (token.accountId === account) await token.constructor.revokeByGrantId(token.grantId);
  }
}

// consent agrees to every prompt.
async function consent(provider, { prompt, params, session }, account) {
  if (prompt.name === 'login') return { login: { accountId: account } };
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? '');
  if (params.resource) grant.addResourceScope(params.resource, 'tools');
  return { consent: { grantId: await grant.save() } };
}

let handle;
const server = createServer((req, res) => handle(req, res));
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  handle = build(issuer);
  console.log(JSON.stringify({ issuer }));
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const [command, account] = line.split(' ');
    if (command === 'rotate') handle = build(issuer);
    if (command === 'close') await close(account);
    console.log(JSON.stringify({ done: line, logouts, renewals, revoked }));
  }).on('close', () => process.exit(0));
});
