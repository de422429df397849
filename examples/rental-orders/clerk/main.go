// Command clerk is the functions of the rental example. For each order of its event
// it prints what it does: ANNOUNCED with one that the topic reports, QUEUED with one
// of a queue. One of a name that begins with BROKEN, if that is set, is an error of
// the function, or of that message of the queue.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() { lambda.Start(handle) }

// event is of SNS or of SQS.
type event struct {
	Records []struct {
		SNS       *events.SNSEntity `json:"Sns"`
		MessageID string            `json:"messageId"`
		Body      string            `json:"body"`
	}
}

func handle(_ context.Context, e event) (events.SQSEventResponse, error) {
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, r := range e.Records {
		var err error
		if r.SNS != nil {
			if err := work("ANNOUNCED", r.SNS.Message); err != nil {
				return answer, err
			}
			continue
		}
		var envelope struct{ Message string }
		if err = json.Unmarshal([]byte(r.Body), &envelope); err == nil {
			err = work("QUEUED", envelope.Message)
		}
		if err != nil {
			fmt.Println(err)
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageID})
		}
	}
	return answer, nil
}

// work does with an order what the environment says.
func work(duty, message string) error {
	var announced struct{ Order string }
	if err := json.Unmarshal([]byte(message), &announced); err != nil {
		return err
	}
	if broken := os.Getenv("BROKEN"); broken != "" && strings.HasPrefix(announced.Order, broken) {
		return fmt.Errorf("order %s is broken", announced.Order)
	}
	fmt.Println(os.Getenv(duty), announced.Order)
	return nil
}
