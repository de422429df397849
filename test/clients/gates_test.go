package clients_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestGates: what the constants say is what the server has.
func TestGates(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	_, err := w.sqs().CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("gate.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if (err == nil) != hasFIFO {
		t.Errorf("hasFIFO is %t; creating a FIFO queue: %v", hasFIFO, err)
	}

	topic, err := w.sns().CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("gate")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.sns().PublishBatch(t.Context(), &sns.PublishBatchInput{
		TopicArn:                   topic.TopicArn,
		PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{{Id: aws.String("a"), Message: aws.String("x")}},
	})
	if (err == nil) != hasPublishBatch {
		t.Errorf("hasPublishBatch is %t; publishing a batch: %v", hasPublishBatch, err)
	}
}
