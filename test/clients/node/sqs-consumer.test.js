// sqs-consumer: a loop that receives, calls a handler, deletes, renews leases.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { SendMessageBatchCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';
import { client, countsOf, createQueue, createQueueWithDeadLetters } from './godwit.js';

const put = (QueueUrl, MessageBody, more = {}) => client.send(new SendMessageCommand({ QueueUrl, MessageBody, ...more }));

/** Runs a consumer until `enough` resolves, and stops it. */
async function consume(options, enough) {
  const consumer = Consumer.create({ sqs: client, waitTimeSeconds: 20, ...options });
  const failed = once(consumer, 'error').then(([err]) => { throw err; });
  consumer.on('processing_error', () => {}); // some handlers are meant to fail
  consumer.start();
  try {
    return await Promise.race([enough(consumer), failed]);
  } finally {
    const stopped = once(consumer, 'stopped');
    consumer.stop({ abort: true });
    await stopped;
  }
}

/** Resolves when an event has come n times. */
const times = (consumer, event, n) => new Promise((resolve) => {
  consumer.on(event, () => { if (--n === 0) resolve(); });
});

test('messages are handled, with their attributes, and deleted', async () => {
  const queueUrl = await createQueue();
  const seen = [];
  const options = {
    queueUrl,
    messageAttributeNames: ['All'],
    messageSystemAttributeNames: ['ApproximateReceiveCount'],
    handleMessage: async (m) => {
      seen.push([m.Body, m.MessageAttributes?.kind.StringValue, m.Attributes.ApproximateReceiveCount]);
      return m;
    },
  };
  await consume(options, async (consumer) => {
    const done = times(consumer, 'message_processed', 2);
    await put(queueUrl, 'one', { MessageAttributes: { kind: { DataType: 'String', StringValue: 'order' } } });
    await put(queueUrl, 'two', { MessageAttributes: { kind: { DataType: 'String', StringValue: 'bill' } } });
    await done;
  });
  assert.deepEqual(seen.sort(), [['one', 'order', '1'], ['two', 'bill', '1']]);
  assert.deepEqual(await countsOf(queueUrl), [0, 0, 0]);
});

test('batches are handled and deleted at once', async () => {
  const queueUrl = await createQueue();
  const Entries = Array.from({ length: 10 }, (_, i) => ({ Id: `e${i}`, MessageBody: `order ${i}` }));
  await client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
  let batch;
  const options = { queueUrl, batchSize: 10, handleMessageBatch: async (all) => { batch = all; return all; } };
  await consume(options, (consumer) => once(consumer, 'response_processed'));
  assert.deepEqual(batch.map((m) => m.Body).sort(), Entries.map((e) => e.MessageBody));
  assert.deepEqual(await countsOf(queueUrl), [0, 0, 0]);
});

test('heartbeats keep a message that takes longer than its lease', async () => {
  const queueUrl = await createQueue();
  await put(queueUrl, 'slow');
  let handled = 0;
  const options = {
    queueUrl,
    visibilityTimeout: 2,
    heartbeatInterval: 1,
    handleMessage: async (m) => {
      handled++;
      // What else could show that the lease was renewed than that it outlasts itself?
      await new Promise((resolve) => { setTimeout(resolve, 3500); });
      assert.deepEqual(await countsOf(queueUrl), [0, 1, 0]);
      return m;
    },
  };
  await consume(options, (consumer) => once(consumer, 'message_processed'));
  assert.equal(handled, 1);
  assert.deepEqual(await countsOf(queueUrl), [0, 0, 0]);
});

test('a handler that throws gives the message back, until it is a dead letter', async () => {
  const { queue, dead } = await createQueueWithDeadLetters(3);
  await put(queue, 'poison');
  let tries = 0;
  const throwing = {
    queueUrl: queue,
    terminateVisibilityTimeout: true, // sets the visibility timeout to 0
    handleMessage: async () => { tries++; throw new Error('no'); },
  };
  const taking = { queueUrl: dead, handleMessage: async (m) => m };
  const letter = await consume(throwing, () =>
    consume(taking, async (consumer) => (await once(consumer, 'message_processed'))[0]));
  assert.equal(letter.Body, 'poison');
  assert.equal(tries, 3);
  assert.deepEqual([await countsOf(queue), await countsOf(dead)], [[0, 0, 0], [0, 0, 0]]);
});

test('a queue that does not exist is an error with its name', async () => {
  const queueUrl = `${await createQueue()}-not`;
  const consumer = Consumer.create({ sqs: client, queueUrl, handleMessage: async (m) => m });
  const failed = once(consumer, 'error');
  consumer.start();
  const [err] = await failed;
  consumer.stop({ abort: true });
  assert.equal(err.code, 'QueueDoesNotExist');
  assert.equal(err.statusCode, 400);
});

test('FIFO: a group comes in its order', async () => {
  const queueUrl = await createQueue({ FifoQueue: 'true', ContentBasedDeduplication: 'true' });
  const seen = [];
  const options = { queueUrl, batchSize: 10, suppressFifoWarning: true, handleMessage: async (m) => { seen.push(m.Body); return m; } };
  const bodies = Array.from({ length: 20 }, (_, i) => `step ${i}`);
  await consume(options, async (consumer) => {
    const done = times(consumer, 'message_processed', bodies.length);
    for (const body of bodies) await put(queueUrl, body, { MessageGroupId: 'g' });
    await done;
  });
  assert.deepEqual(seen, bodies);
});
