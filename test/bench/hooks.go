package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// hooks is a server of web hooks, at as many hosts as wanted: each address of
// 127.0.0.0/8 is this machine's, on Linux.
type hooks struct {
	port    string
	server  *http.Server
	tokens  chan string   // of confirmations
	arrived chan struct{} // one for each notification to the path /live
}

// listenHooks starts the server. Notifications to any path but /live are never
// answered.
func listenHooks() (*hooks, error) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	h := &hooks{port: port, tokens: make(chan string, 1), arrived: make(chan struct{}, 1)}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(l) }()
	return h, nil
}

func (h *hooks) close() { _ = h.server.Close() }

func (h *hooks) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
	case r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation":
		var confirmation struct{ Token string }
		_ = json.Unmarshal(body, &confirmation)
		h.tokens <- confirmation.Token
	case r.URL.Path == "/live":
		h.arrived <- struct{}{}
	default:
		<-r.Context().Done()
	}
}

// subscribe subscribes the i-th host's web hook at a path, and confirms it.
func (h *hooks) subscribe(ctx context.Context, c *conn, topic string, i int, path string) error {
	endpoint := fmt.Sprintf("http://127.%d.%d.%d:%s%s", 1+i>>16&0x3f, i>>8&0xff, i&0xff, h.port, path)
	if _, err := query(c, "SubscriptionArn", "Subscribe", url.Values{
		"TopicArn": {topic}, "Protocol": {"http"}, "Endpoint": {endpoint}, "ReturnSubscriptionArn": {"true"},
		"Attributes.entry.1.key": {"RawMessageDelivery"}, "Attributes.entry.1.value": {"true"},
	}); err != nil {
		return err
	}
	select {
	case token := <-h.tokens:
		_, err := query(c, "SubscriptionArn", "ConfirmSubscription", url.Values{"TopicArn": {topic}, "Token": {token}})
		return err
	case <-time.After(20 * time.Second):
		return errors.New("the confirmation of a web hook did not come")
	case <-ctx.Done():
		return ctx.Err()
	}
}
