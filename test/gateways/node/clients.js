// The clients speak to stand-ins of the services that they are for, and tell what they were
// answered, as JSON.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const http2 = require("node:http2");
const apn = require("@parse/node-apn");
const jwt = require("jsonwebtoken");
const { initializeApp } = require("firebase-admin/app");
const { getMessaging } = require("firebase-admin/messaging");

const given = JSON.parse(process.env.GODWIT_GATEWAYS);
const told = { apns: {}, fcm: {} };

// firebase-admin knows one place only, and writes the scheme with a colon, which Google's
// servers let pass and others do not.
const connect = http2.connect;
http2.connect = (url, ...rest) => {
  const session = connect(String(url).replace("https://fcm.googleapis.com", given.fcm), ...rest);
  const request = session.request.bind(session);
  session.request = (headers, ...more) => request({ ...headers, ...(headers[":scheme"] && { ":scheme": "https" }) }, ...more);
  return session;
};

const at = new URL(given.apns);

async function push(name, options, device, change = () => {}) {
  const provider = new apn.Provider({ address: at.hostname, port: Number(at.port), production: false, ...options });
  const note = new apn.Notification({ alert: "hi", topic: "dev.godwit.App", pushType: "alert", expiry: 4102444800 });
  change(note);
  const { sent, failed } = await provider.send(note, device);
  told.apns[name] = sent.length ? "sent" : `${failed[0]?.status} ${failed[0]?.response?.reason ?? failed[0]?.error}`;
  await provider.shutdown();
}

const token = { key: given.key, keyId: given.keyId, teamId: given.team };
await push("token", { token }, given.device);
await push("certificate", { cert: given.certificate, key: given.certificateKey }, given.device);
await push("another key", { token: { ...token, key: given.otherKey } }, given.device);
await push("another team", { token: { ...token, teamId: "OTHER" } }, given.device);
await push("no device", { token }, "zz");
await push("unregistered", { token }, given.gone);
await push("no topic", { token }, given.device, (n) => { n.topic = undefined; });
await push("too large", { token }, given.device, (n) => { n.payload = { text: "x".repeat(5000) }; });
await push("priority", { token }, given.device, (n) => { n.priority = 7; });

const account = JSON.parse(given.account);

async function ask(key) {
  const assertion = jwt.sign({ scope: "https://www.googleapis.com/auth/firebase.messaging" }, key, {
    algorithm: "RS256", issuer: account.client_email, audience: account.token_uri, expiresIn: 3600, keyid: account.private_key_id,
  });
  const answer = await fetch(account.token_uri, {
    method: "POST", body: new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion }),
  });
  return { status: answer.status, ...(await answer.json()) };
}

told.fcm["another key"] = (await ask(given.otherRSA)).error;
const app = initializeApp({ projectId: account.project_id, credential: { getAccessToken: () => ask(account.private_key) } });

async function message(name, m) {
  const { responses: [r] } = await getMessaging(app).sendEach([m]);
  told.fcm[name] = r.success ? r.messageId : r.error.code;
}

await message("data", { token: "device", data: { n: "1" } });
await message("all", {
  token: "device", notification: { title: "t", body: "b" },
  android: { ttl: 60000, priority: "high", notification: { channelId: "c" } }, apns: { payload: { aps: { badge: 1 } } }, webpush: { data: { a: "b" } },
});
await message("unregistered", { token: given.gone, data: { n: "1" } });
await message("mismatch", { token: "mismatch", data: { n: "1" } });

const stranger = initializeApp({ projectId: account.project_id, credential: { getAccessToken: async () => ({ access_token: "none", expires_in: 60 }) } }, "stranger");
const { responses: [refused] } = await getMessaging(stranger).sendEach([{ token: "device", data: { n: "1" } }]);
told.fcm["no token"] = refused.error.code;

console.log(JSON.stringify(told));
process.exit(0);
