import { PublishCommand } from "@aws-sdk/client-sns";

/** Tells those who subscribe to a topic of an order. They can filter by its status. */
export async function publish(topics, topic, order) {
  await topics.send(
    new PublishCommand({
      TopicArn: topic,
      Message: JSON.stringify(order),
      MessageAttributes: { status: { DataType: "String", StringValue: order.status } },
    }),
  );
}
