package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The targets of stacks.
const (
	deployTime   = 3.0  // s, to create a stack of deployLarge resources, and to delete it
	stacksMemory = 50.0 // MB resident for many small stacks, with their resources
	deployLarge  = 200
)

var cloudformation = &operation{service: "cloudformation", contentType: snsOperation.contentType}

// smallStack is what each of many stacks has.
const smallStack = `
Resources:
  Dead: {Type: AWS::SQS::Queue}
  Orders: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}}}
  Events: {Type: AWS::SNS::Topic}
  May:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Orders]
      PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: sns.amazonaws.com}, Action: "sqs:SendMessage", Resource: "*"}]}
  Feed: {Type: AWS::SNS::Subscription, DependsOn: May, Properties: {TopicArn: !Ref Events, Protocol: sqs, Endpoint: !GetAtt Orders.Arn}}
`

// runStacks deploys and deletes a large stack, and then makes many small ones.
func runStacks(ctx context.Context, b *bench) error {
	return b.alone(ctx, func(s *server) error {
		c := newConn(s.host)
		defer c.close()
		t := &table{
			title:  "Stacks",
			note:   fmt.Sprintf("A stack of %d queues, topics, policies and subscriptions, from the request until it is complete; then %d stacks of five resources each.", deployLarge, b.stacks),
			header: []string{"", "server", "s", "CPU s"},
		}
		b.report.tables = append(b.report.tables, t)
		slowest := 0.0
		name := b.newName()
		for _, one := range []struct{ what, action, end string }{{"deploy", "CreateStack", "CREATE_COMPLETE"}, {"delete", "DeleteStack", "DELETE_COMPLETE"}} {
			took, cpu, err := s.timed(func() error { return deployStack(ctx, c, one.action, name, largeStack(), one.end) })
			if err != nil {
				return err
			}
			t.add(fmt.Sprintf("%s %d resources", one.what, deployLarge), s.name, figure(took/1000), figure(cpu/1000))
			slowest = max(slowest, took/1000)
		}
		b.judge(slowest <= deployTime, figure(slowest)+" s", "a stack of %d resources is deployed, and deleted, within %.0f s", deployLarge, deployTime)

		before, _ := memory(s.pid)
		took, cpu, err := s.timed(func() error {
			for range b.stacks {
				if err := deployStack(ctx, c, "CreateStack", b.newName(), smallStack, "CREATE_COMPLETE"); err != nil {
					return err
				}
			}
			return pause(ctx, b.idle)
		})
		if err != nil {
			return err
		}
		full, _ := memory(s.pid)
		c.close()
		if err := s.restart(ctx, false); err != nil {
			return err
		}
		if err := pause(ctx, b.idle); err != nil {
			return err
		}
		restarted, _ := memory(s.pid)
		t.add(fmt.Sprintf("%d stacks, one after the other", b.stacks), s.name, figure(took/1000), figure(cpu/1000))
		t.add(fmt.Sprintf("RSS MB: %s before, %s with them, %s after a restart of %s s", figure(before), figure(full), figure(restarted), figure(s.readyIn.Seconds())), s.name, "", "")
		most := max(full, restarted) - before
		b.judge(most <= stacksMemory, fmt.Sprintf("%s MB, %s after a restart", figure(full-before), figure(restarted-before)),
			"%d stacks take at most %.0f MB", b.stacks, stacksMemory)
		return nil
	})
}

// largeStack is a template of deployLarge resources: topics, each with a queue that is
// subscribed to it, and the queue's policy.
func largeStack() string {
	var t strings.Builder
	t.WriteString("Resources:\n")
	for i := range deployLarge / 4 {
		fmt.Fprintf(&t, "  T%d: {Type: AWS::SNS::Topic}\n  Q%[1]d: {Type: AWS::SQS::Queue}\n", i)
		fmt.Fprintf(&t, "  P%d: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Q%[1]d], PolicyDocument: {Statement: [{Effect: Allow, Principal: '*', Action: 'sqs:SendMessage', Resource: '*'}]}}}\n", i)
		fmt.Fprintf(&t, "  S%d: {Type: AWS::SNS::Subscription, DependsOn: P%[1]d, Properties: {TopicArn: !Ref T%[1]d, Protocol: sqs, Endpoint: !GetAtt Q%[1]d.Arn}}\n", i)
	}
	return t.String()
}

// deployStack has a stack made or deleted, and waits until it is as it is to end.
func deployStack(ctx context.Context, c *conn, action, name, template, end string) error {
	if _, err := stackAction(c, action, url.Values{"StackName": {name}, "TemplateBody": {template}}); err != nil {
		return err
	}
	look, filter := "DescribeStacks", url.Values{"StackName": {name}}
	if action == "DeleteStack" { // of which only lists tell by name
		look, filter = "ListStacks", url.Values{"StackStatusFilter.member.1": {end}}
	}
	for {
		answer, err := stackAction(c, look, filter)
		if err != nil {
			return err
		}
		switch {
		case strings.Contains(answer, "<StackStatus>"+end+"<"):
			return nil
		case look == "DescribeStacks" && !strings.Contains(answer, "_IN_PROGRESS<"):
			return fmt.Errorf("%s of %s does not end as %s: %.600s", action, name, end, answer)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// stackAction calls an action of CloudFormation.
func stackAction(c *conn, action string, parameters url.Values) (answer string, err error) {
	form := url.Values{"Action": {action}, "Version": {"2010-05-15"}}
	for name, value := range parameters {
		if name != "TemplateBody" || action == "CreateStack" {
			form[name] = value
		}
	}
	text, err := c.do(cloudformation, []byte(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("%s: %w", action, err)
	}
	return string(text), nil
}
