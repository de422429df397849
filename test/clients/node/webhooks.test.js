// Providers' own libraries sign posts to sources: what they sign is taken once, and
// what was changed, is old or is signed by another is not.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { DeleteMessageCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { Webhooks } from '@octokit/webhooks';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { attributesOf, client, createQueue } from './godwit.js';

const stripe = new Stripe('sk_test_none');
const ago = (seconds) => Math.floor(Date.now() / 1000) - seconds;
const shared = 'a secret of some length';
const standard = `whsec_${Buffer.from(shared).toString('base64')}`;

// What a provider sends with a body: sign(secret, body, age in seconds) gives headers.
const providers = {
  stripe: {
    secret: 'whsec_of_some_length_for_a_test',
    body: () => JSON.stringify({ id: `evt_${randomUUID()}`, type: 'charge.succeeded' }, null, 2),
    sign: (secret, payload, age = 0) => ({
      'Stripe-Signature': stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: ago(age) }),
    }),
    ages: true,
  },
  'standard-webhooks': {
    secret: standard,
    body: () => JSON.stringify({ type: 'invoice.paid', text: 'naïve ✓' }),
    sign: (secret, body, age = 0, id = `msg_${randomUUID()}`) => ({
      'webhook-id': id,
      'webhook-timestamp': String(ago(age)),
      'webhook-signature': new Webhook(secret).sign(id, new Date(ago(age) * 1000), body),
    }),
    other: `whsec_${Buffer.from('another secret of some length').toString('base64')}`,
    ages: true,
  },
  github: {
    secret: shared,
    body: () => JSON.stringify({ action: 'opened', number: 7 }),
    sign: async (secret, body) => ({
      'X-GitHub-Delivery': randomUUID(),
      'X-GitHub-Event': 'pull_request',
      'X-Hub-Signature-256': await new Webhooks({ secret }).sign(body),
    }),
  },
};

for (const [kind, provider] of Object.entries(providers)) {
  test(kind, async () => {
    const queue = await createQueue({ FifoQueue: 'true' });
    const { QueueArn: target } = await attributesOf(queue);
    const name = `${kind}-${randomUUID()}`;
    const put = await fetch(`${process.env.AWS_ENDPOINT_URL}/_godwit/v1/sources`, {
      method: 'POST',
      body: JSON.stringify({ name, target, verification: { kind }, secrets: [provider.secret] }),
    });
    assert.equal(put.status, 200, await put.text());
    const post = async (body, headers) => {
      const answer = await fetch(`${process.env.GODWIT_INGEST}/in/${name}`, {
        method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers },
      });
      return { status: answer.status, ...await answer.json() };
    };

    const body = provider.body();
    const headers = await provider.sign(provider.secret, body);
    const first = await post(body, headers);
    assert.equal(first.status, 202, JSON.stringify(first));
    const again = await post(body, headers); // a provider that has not seen the answer
    assert.deepEqual(again, first);
    assert.equal((await post(`${body} `, headers)).status, 401, 'a changed body');
    const other = provider.other ?? 'another secret of some length';
    assert.equal((await post(body, await provider.sign(other, body))).status, 401, 'another secret');
    if (provider.ages) {
      assert.equal((await post(body, await provider.sign(provider.secret, body, 301))).status, 401, 'an old signature');
    }

    const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl: queue, MaxNumberOfMessages: 10 }));
    assert.deepEqual(Messages.map((m) => [m.MessageId, m.Body]), [[first.messageId, body]]);
    const [{ ReceiptHandle }] = Messages;
    await client.send(new DeleteMessageCommand({ QueueUrl: queue, ReceiptHandle }));
    const { Messages: left = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl: queue }));
    assert.deepEqual(left, []);
  });
}
