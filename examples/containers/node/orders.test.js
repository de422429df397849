import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CreateTopicCommand, SNSClient, SubscribeCommand } from "@aws-sdk/client-sns";
import { CreateQueueCommand, ListQueuesCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { account, GodwitContainer, region } from "@godwit/testcontainers";
import { publish } from "./orders.js";

let godwit;

before(async () => {
  godwit = await new GodwitContainer().withBinary(process.env.GODWIT_LINUX_BINARY).withVirtualClock().start();
});

after(async () => {
  await godwit?.stop();
});

test("a confirmed order comes to the warehouse, also after a day in which it was out of order", async () => {
  const topics = new SNSClient(godwit.config);
  const queues = new SQSClient(godwit.config);
  const { TopicArn } = await topics.send(new CreateTopicCommand({ Name: "orders" }));
  const { QueueUrl } = await queues.send(new CreateQueueCommand({ QueueName: "warehouse" }));
  const arn = `arn:aws:sqs:${region}:${account}:warehouse`;
  await topics.send(
    new SubscribeCommand({
      TopicArn,
      Protocol: "sqs",
      Endpoint: arn,
      Attributes: { RawMessageDelivery: "true", FilterPolicy: '{"status":["confirmed"]}' },
    }),
  );

  await godwit.fault(arn, "unavailable");
  await publish(topics, TopicArn, { id: "1", status: "confirmed" });
  await publish(topics, TopicArn, { id: "2", status: "quoted" });
  await godwit.advance("1d");
  await godwit.fault(arn, "none");
  await godwit.advance("1m");

  const { Messages } = await queues.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
  assert.deepEqual(Messages.map((m) => JSON.parse(m.Body)), [{ id: "1", status: "confirmed" }]);

  await assert.rejects(godwit.fault("orders", "unavailable"), /arn: want the ARN/);
  await godwit.reset();
  const { QueueUrls } = await queues.send(new ListQueuesCommand({}));
  assert.equal(QueueUrls, undefined);
});
