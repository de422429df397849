package main

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
)

// snsOperation is the only one there is: in the Query protocol the body says
// which action is meant.
var snsOperation = &operation{service: "sns", contentType: "application/x-www-form-urlencoded; charset=utf-8"}

// query calls an action of SNS and returns the text of one element of the answer.
func query(c *conn, element, action string, parameters url.Values) (string, error) {
	parameters.Set("Action", action)
	parameters.Set("Version", "2010-03-31")
	answer, err := c.do(snsOperation, []byte(parameters.Encode()))
	if err != nil {
		return "", fmt.Errorf("%s: %w", action, err)
	}
	if element == "" {
		return "", nil
	}
	text, ok := elementText(answer, element)
	if !ok || text == "" {
		return "", fmt.Errorf("%s: no %s in %.300s", action, element, answer)
	}
	return text, nil
}

func elementText(doc []byte, element string) (string, bool) {
	_, rest, _ := bytes.Cut(doc, []byte("<"+element+">"))
	text, _, ok := bytes.Cut(rest, []byte("</"+element+">"))
	return html.UnescapeString(string(text)), ok
}

func makeTopic(c *conn, name string) (arn string, err error) {
	return query(c, "TopicArn", "CreateTopic", url.Values{"Name": {name}})
}

func dropTopic(c *conn, arn string) error {
	_, err := query(c, "", "DeleteTopic", url.Values{"TopicArn": {arn}})
	return err
}

// subscribe subscribes an endpoint. Those that are not queues must be confirmed.
func subscribe(c *conn, topic, protocol, endpoint string, raw bool) error {
	_, err := query(c, "SubscriptionArn", "Subscribe", url.Values{
		"TopicArn":                 {topic},
		"Protocol":                 {protocol},
		"Endpoint":                 {endpoint},
		"ReturnSubscriptionArn":    {"true"},
		"Attributes.entry.1.key":   {"RawMessageDelivery"},
		"Attributes.entry.1.value": {strconv.FormatBool(raw)},
	})
	return err
}

func confirmSubscription(c *conn, t token) error {
	_, err := query(c, "SubscriptionArn", "ConfirmSubscription", url.Values{"TopicArn": {t.topic}, "Token": {t.token}})
	return err
}

// publisher publishes to one topic. It is for one goroutine.
type publisher struct {
	c    *conn
	rng  *rand.Rand
	head []byte
	body []byte
}

func newPublisher(c *conn, topic string, seed uint64) *publisher {
	return &publisher{
		c:    c,
		rng:  rand.New(rand.NewPCG(3, seed)),
		head: []byte("Action=Publish&Version=2010-03-31&TopicArn=" + url.QueryEscape(topic) + "&Message="),
	}
}

// publish publishes a random text.
func (p *publisher) publish(from texts) error { return p.publishStamped(from, nil) }

// publishStamped publishes a random text whose beginning is the stamp.
func (p *publisher) publishStamped(from texts, stamp []byte) error {
	t := &from[p.rng.IntN(len(from))]
	p.body = append(append(p.body[:0], p.head...), stamp...) // digits need no escape
	p.body = append(p.body, url.QueryEscape(string(t.plain[min(len(stamp), len(t.plain)):]))...)
	answer, err := p.c.do(snsOperation, p.body)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if !bytes.Contains(answer, []byte("<MessageId>")) {
		return fmt.Errorf("publish: no MessageId in %.300s", answer)
	}
	return nil
}
