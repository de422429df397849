// Package containers has a function that sends orders, which its test runs against a Godwit in
// a container.
package containers

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// Order is what a customer has ordered.
type Order struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// Publish tells those who subscribe to a topic of an order. They can filter by its status.
func Publish(ctx context.Context, topics *sns.Client, topic string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	text, kind, message := o.Status, "String", string(body)
	_, err = topics.Publish(ctx, &sns.PublishInput{
		TopicArn: &topic, Message: &message,
		MessageAttributes: map[string]types.MessageAttributeValue{"status": {DataType: &kind, StringValue: &text}},
	})
	return err
}
