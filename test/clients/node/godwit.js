// What the tests of the npm clients have in common.
import { randomUUID } from 'node:crypto';
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';

// Endpoint, region and credentials come from the environment.
export const client = new SQSClient({});

/** Creates a queue with a name of its own and returns its URL. */
export async function createQueue(Attributes = {}) {
  const QueueName = `node-${randomUUID()}${Attributes.FifoQueue ? '.fifo' : ''}`;
  return (await client.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl;
}

/** Creates a queue and its dead-letter queue. */
export async function createQueueWithDeadLetters(maxReceiveCount, Attributes = {}) {
  const dead = await createQueue(Attributes.FifoQueue ? { FifoQueue: 'true' } : {});
  const { QueueArn: deadLetterTargetArn } = await attributesOf(dead);
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount });
  return { queue: await createQueue({ ...Attributes, RedrivePolicy }), dead };
}

/** All attributes of a queue. */
export async function attributesOf(QueueUrl) {
  return (await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }))).Attributes;
}

/** How many messages a queue holds: visible, in flight, delayed. */
export async function countsOf(QueueUrl) {
  const a = await attributesOf(QueueUrl);
  return ['', 'NotVisible', 'Delayed'].map((s) => Number(a[`ApproximateNumberOfMessages${s}`]));
}
