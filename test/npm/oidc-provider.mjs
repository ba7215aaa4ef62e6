// A real OpenID provider on loopback for the tests: node oidc-provider.mjs, started in the folder
// that holds node_modules. It prints one line, {"issuer": …}. A line "rotate" on stdin gives it a
// new signing key, a line "logouts" prints the logout tokens that it sent, a line "close alice" closes that
// account, without a logout; the end of stdin ends it.
//
// Clients: "app" and "ropewalk" (public, authorization code with PKCE), "confidential" (authorization code, secret
// "confidential-secret-0123456789"; logouts are sent to /v1/auth/backchannel-logout) and "machine" (client
// credentials, secret "machine-secret-0123456789"); others may register. Whoever logs in is alice, or whom
// login_hint or else the cookie "account" names, an admin of org_1, without a question; with the argument "form" a page asks for the account, and
// only alice is an admin. With the argument "accounts" it issues refresh tokens and rotates them, and access tokens last
// for as many seconds as the next argument says. Access tokens for a resource are JWTs; it answers about them (RFC 7662) and revokes them
// (RFC 7009). With "accounts", it gives codes for logins on other devices (RFC 8628), and tokens are bound to a key if a client proves that it has one, with a nonce (DPoP).
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

console.info = console.warn = console.error; // the provider's notices; stdout is for answers

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
    conformIdTokenClaims: form, // with the form, name and email are at UserInfo only
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true }, // clients that it does not know, as MCP's are
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
    fetch: (url, { dispatcher, ...options }) => { // without the dispatcher, which connects to no loopback address
      if (options.body instanceof URLSearchParams && options.body.has('logout_token')) logouts.push(options.body.get('logout_token'));
      return fetch(url, options);
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  });
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

// keep stores a token that is a JWT by its jti, as the provider stores opaque ones: it keeps no JWTs itself. The JWT names
// the session at the provider, as the answer about an opaque token would.
async function keep(token, payload) {
  const { iat, exp } = payload;
  const stored = { iat, exp };
  if (token.sid) payload.sid = token.sid;
  for (const name of token.constructor.IN_PAYLOAD) stored[name] ??= token[name];
  await token.adapter.upsert(token.jti, stored, exp - iat);
  tokens.push(token);
}

// formOf is the form of a request about a token; a JWT is replaced by its jti.
async function formOf(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
  const payload = fields.token?.split('.')[1];
  if (payload) fields.token = JSON.parse(Buffer.from(payload, 'base64url')).jti;
  return fields;
}

// close closes an account: its tokens are revoked, and the provider knows nobody of the name any more.
async function close(account) {
  closed.add(account);
  for (const token of tokens) {
    if (token.accountId === account) await token.constructor.revokeByGrantId(token.grantId);
  }
}

// consent answers every prompt as a willing person would.
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
    console.log(JSON.stringify({ done: line, logouts }));
  }).on('close', () => process.exit(0));
});
