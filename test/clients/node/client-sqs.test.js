// @aws-sdk/client-sqs, version 3: every everyday call. The client itself
// compares the MD5 sums of bodies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ChangeMessageVisibilityBatchCommand, ChangeMessageVisibilityCommand, DeleteMessageBatchCommand, DeleteMessageCommand,
  DeleteQueueCommand, GetQueueUrlCommand, ListDeadLetterSourceQueuesCommand, ListQueuesCommand, ListQueueTagsCommand,
  PurgeQueueCommand, QueueDoesNotExist, ReceiptHandleIsInvalid, ReceiveMessageCommand, SendMessageBatchCommand,
  SendMessageCommand, SetQueueAttributesCommand, TagQueueCommand, UntagQueueCommand,
} from '@aws-sdk/client-sqs';
import { attributesOf, client, countsOf, createQueue, createQueueWithDeadLetters } from './godwit.js';

const send = (Command, input) => client.send(new Command(input));
const receive = async (QueueUrl, more = {}) => {
  const input = { QueueUrl, WaitTimeSeconds: 20, MessageSystemAttributeNames: ['All'], MessageAttributeNames: ['All'], ...more };
  return (await send(ReceiveMessageCommand, input)).Messages ?? [];
};

test('the life of a queue', async () => {
  const QueueUrl = await createQueue({ VisibilityTimeout: '7' });
  const QueueName = QueueUrl.split('/').at(-1);
  assert.equal((await send(GetQueueUrlCommand, { QueueName })).QueueUrl, QueueUrl);
  assert.deepEqual((await send(ListQueuesCommand, { QueueNamePrefix: QueueName })).QueueUrls, [QueueUrl]);

  await send(SetQueueAttributesCommand, { QueueUrl, Attributes: { DelaySeconds: '3' } });
  const attributes = await attributesOf(QueueUrl);
  assert.equal(attributes.VisibilityTimeout, '7');
  assert.equal(attributes.DelaySeconds, '3');
  assert.equal(attributes.QueueArn, `arn:aws:sqs:us-east-1:000000000000:${QueueName}`);

  await send(TagQueueCommand, { QueueUrl, Tags: { team: 'rental', stage: 'test' } });
  await send(UntagQueueCommand, { QueueUrl, TagKeys: ['stage'] });
  assert.deepEqual((await send(ListQueueTagsCommand, { QueueUrl })).Tags, { team: 'rental' });

  await send(SendMessageCommand, { QueueUrl, MessageBody: 'later' });
  assert.deepEqual(await countsOf(QueueUrl), [0, 0, 1]);
  await send(PurgeQueueCommand, { QueueUrl });
  assert.deepEqual(await countsOf(QueueUrl), [0, 0, 0]);

  await send(DeleteQueueCommand, { QueueUrl });
  await assert.rejects(send(SendMessageCommand, { QueueUrl, MessageBody: 'x' }), QueueDoesNotExist);
});

test('a message with attributes', async () => {
  const QueueUrl = await createQueue();
  const MessageAttributes = {
    kind: { DataType: 'String', StringValue: 'grün' },
    'price.eur': { DataType: 'Number.float', StringValue: '12.50' },
    seal: { DataType: 'Binary', BinaryValue: new Uint8Array([0, 1, 254, 255]) },
  };
  const MessageBody = 'Größe: 3 € "quoted" \u{1F9F0}\n\ttab';
  const sent = await send(SendMessageCommand, { QueueUrl, MessageBody, MessageAttributes });
  const [m] = await receive(QueueUrl);
  assert.equal(m.MessageId, sent.MessageId);
  assert.equal(m.Body, MessageBody);
  assert.deepEqual(m.MessageAttributes, MessageAttributes);
  assert.equal(m.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
  assert.equal(m.Attributes.ApproximateReceiveCount, '1');
  await send(DeleteMessageCommand, { QueueUrl, ReceiptHandle: m.ReceiptHandle });
  assert.deepEqual(await countsOf(QueueUrl), [0, 0, 0]);
});

test('batches', async () => {
  const QueueUrl = await createQueue();
  const Entries = Array.from({ length: 10 }, (_, i) => ({ Id: `e${i}`, MessageBody: `order ${i}` }));
  const sent = await send(SendMessageBatchCommand, { QueueUrl, Entries });
  assert.deepEqual(sent.Successful.map((s) => s.Id).sort(), Entries.map((e) => e.Id));
  assert.deepEqual(sent.Failed ?? [], []);

  const got = await receive(QueueUrl, { MaxNumberOfMessages: 10 });
  assert.deepEqual(got.map((m) => m.Body).sort(), Entries.map((e) => e.MessageBody));
  const hidden = got.slice(0, 2).map((m, i) => ({ Id: `v${i}`, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0 }));
  assert.equal((await send(ChangeMessageVisibilityBatchCommand, { QueueUrl, Entries: hidden })).Successful.length, 2);
  assert.deepEqual(await countsOf(QueueUrl), [2, 8, 0]);

  const gone = got.slice(2).map((m, i) => ({ Id: `d${i}`, ReceiptHandle: m.ReceiptHandle }));
  const deleted = await send(DeleteMessageBatchCommand, { QueueUrl, Entries: [...gone, { Id: 'no', ReceiptHandle: 'nonsense' }] });
  assert.equal(deleted.Successful.length, 8);
  assert.deepEqual(deleted.Failed.map((f) => [f.Id, f.SenderFault, f.Code]), [['no', true, 'ReceiptHandleIsInvalid']]);
  assert.deepEqual(await countsOf(QueueUrl), [2, 0, 0]);
});

test('a long poll gets what is sent meanwhile', async () => {
  const QueueUrl = await createQueue({ ReceiveMessageWaitTimeSeconds: '20' });
  const waiting = receive(QueueUrl, { WaitTimeSeconds: undefined });
  await send(SendMessageCommand, { QueueUrl, MessageBody: 'at last' });
  assert.deepEqual((await waiting).map((m) => m.Body), ['at last']);
});

test('visibility', async () => {
  const QueueUrl = await createQueue();
  await send(SendMessageCommand, { QueueUrl, MessageBody: 'x' });
  const [first] = await receive(QueueUrl);
  assert.deepEqual(await receive(QueueUrl, { WaitTimeSeconds: 0 }), []);
  await send(ChangeMessageVisibilityCommand, { QueueUrl, ReceiptHandle: first.ReceiptHandle, VisibilityTimeout: 0 });
  const [second] = await receive(QueueUrl);
  assert.equal(second.MessageId, first.MessageId);
  assert.equal(second.Attributes.ApproximateReceiveCount, '2');
  const bad = { QueueUrl, ReceiptHandle: 'nonsense', VisibilityTimeout: 0 };
  await assert.rejects(send(ChangeMessageVisibilityCommand, bad), ReceiptHandleIsInvalid);
});

test('dead letters', async () => {
  const { queue, dead } = await createQueueWithDeadLetters(1);
  assert.deepEqual((await send(ListDeadLetterSourceQueuesCommand, { QueueUrl: dead })).queueUrls, [queue]);
  const { MessageId } = await send(SendMessageCommand, { QueueUrl: queue, MessageBody: 'poison' });
  await receive(queue, { VisibilityTimeout: 0 });
  assert.deepEqual(await receive(queue, { WaitTimeSeconds: 0 }), []);
  const [m] = await receive(dead);
  assert.equal(m.MessageId, MessageId);
  assert.equal(m.Attributes.DeadLetterQueueSourceArn, (await attributesOf(queue)).QueueArn);
});

test('errors have their names', async () => {
  const unknown = send(GetQueueUrlCommand, { QueueName: 'nobody-made-this' });
  await assert.rejects(unknown, (err) => {
    assert.ok(err instanceof QueueDoesNotExist);
    assert.equal(err.name, 'QueueDoesNotExist');
    assert.equal(err.$metadata.httpStatusCode, 400);
    assert.match(err.$metadata.requestId, /^[0-9a-f-]{36}$/);
    return true;
  });
});

test('FIFO: order, groups, deduplication', async () => {
  const QueueUrl = await createQueue({ FifoQueue: 'true' });
  const put = (MessageBody, MessageGroupId, MessageDeduplicationId = MessageBody) =>
    send(SendMessageCommand, { QueueUrl, MessageBody, MessageGroupId, MessageDeduplicationId });
  const a1 = await put('a1', 'a');
  await put('a2', 'a');
  await put('b1', 'b');
  const again = await put('a1', 'a');
  assert.equal(again.MessageId, a1.MessageId);
  assert.equal(again.SequenceNumber, a1.SequenceNumber);

  const [first] = await receive(QueueUrl);
  assert.equal(first.Body, 'a1');
  assert.equal(first.Attributes.MessageGroupId, 'a');
  assert.equal(first.Attributes.SequenceNumber, a1.SequenceNumber);
  // The group a is held up until its first message is done; b is not.
  const others = await receive(QueueUrl, { MaxNumberOfMessages: 10 });
  assert.deepEqual(others.map((m) => m.Body), ['b1']);
  await send(DeleteMessageCommand, { QueueUrl, ReceiptHandle: first.ReceiptHandle });
  assert.deepEqual((await receive(QueueUrl)).map((m) => m.Body), ['a2']);
});
