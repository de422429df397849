// Package messaging takes the steps of queues, topics, subscriptions, delivery streams and sources.
package messaging

import "godwit.dev/godwit/internal/server/deploying/step"

// Handlers are those of the types of resources.
var Handlers = map[string]step.Handler{
	"AWS::SQS::Queue":                      {Create: createQueue, Update: updateQueue, Delete: deleteQueue},
	"AWS::SQS::QueuePolicy":                {Create: putQueuePolicy, Update: putQueuePolicy, Delete: deleteQueuePolicy},
	"AWS::SQS::QueueInlinePolicy":          {Create: putQueuePolicy, Update: putQueuePolicy, Delete: deleteQueuePolicy},
	"AWS::SNS::Topic":                      {Create: createTopic, Update: updateTopic, Delete: deleteTopic},
	"AWS::SNS::TopicPolicy":                {Create: putTopicPolicy, Update: putTopicPolicy, Delete: deleteTopicPolicy},
	"AWS::SNS::TopicInlinePolicy":          {Create: putTopicPolicy, Update: putTopicPolicy, Delete: deleteTopicPolicy},
	"AWS::SNS::Subscription":               {Create: createSubscription, Update: updateSubscription, Delete: deleteSubscription},
	"AWS::KinesisFirehose::DeliveryStream": {Create: createStream, Update: updateStream, Delete: deleteStream},
	"Godwit::Ingest::Source":               {Create: createSource, Update: writeSource, Delete: deleteSource},
}
