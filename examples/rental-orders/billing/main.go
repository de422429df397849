// Command billing is the web hook of the rental example: an HTTP endpoint that
// is subscribed to the topic Rental-Orders. It starts out of order and answers
// 503 until it is told otherwise.
//
//	POST /orders          what the subscription points at
//	PUT  /status/CODE     answer CODE from now on: 200 to work, 503 to be down
//	GET  /arrivals        every notification that came in, as a JSON list
//	GET  /arrivals/ORDER  those of one order
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "where to listen")
	topic := flag.String("topic", "arn:aws:sns:us-east-1:000000000000:Rental-Orders", "the topic whose subscription is confirmed")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Println("billing listens on", listener.Addr())
		err = http.Serve(listener, newBilling(*topic).routes())
	}
	fmt.Fprintln(os.Stderr, "billing:", err)
	os.Exit(1)
}

// billing is the state of the endpoint.
type billing struct {
	topic  string
	client *http.Client

	mu       sync.Mutex
	status   int // of the answers to notifications
	arrivals []arrival
}

// arrival is one notification that came in.
type arrival struct {
	At        time.Time `json:"at"`
	Status    int       `json:"status"` // what it was answered with
	MessageID string    `json:"messageId"`
	Order     string    `json:"order"`
}

// notification is what SNS posts.
type notification struct {
	Type         string
	MessageId    string // named as the envelope has it
	TopicArn     string
	Message      string
	SubscribeURL string
}

func newBilling(topic string) *billing {
	return &billing{
		topic:    topic,
		client:   &http.Client{Timeout: 10 * time.Second},
		status:   http.StatusServiceUnavailable,
		arrivals: []arrival{},
	}
}

func (b *billing) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", b.take)
	mux.HandleFunc("PUT /status/{code}", b.setStatus)
	mux.HandleFunc("GET /arrivals", b.list)
	mux.HandleFunc("GET /arrivals/{order}", b.list)
	return mux
}

func (b *billing) take(w http.ResponseWriter, r *http.Request) {
	var n notification
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if n.TopicArn != b.topic {
		http.Error(w, "not our topic", http.StatusForbidden)
		return
	}
	switch n.Type {
	case "SubscriptionConfirmation":
		if err := b.confirm(n.SubscribeURL); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	case "Notification":
		w.WriteHeader(b.record(n))
	}
}

// confirm says yes to a subscription, as an owner of an endpoint does by
// opening the link.
func (b *billing) confirm(link string) error {
	resp, err := b.client.Get(link)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("the confirmation was answered with " + resp.Status)
	}
	return nil
}

func (b *billing) record(n notification) (status int) {
	var order struct{ Order string }
	_ = json.Unmarshal([]byte(n.Message), &order) // what is no order is listed without one
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrivals = append(b.arrivals, arrival{At: time.Now().UTC(), Status: b.status, MessageID: n.MessageId, Order: order.Order})
	return b.status
}

func (b *billing) setStatus(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil || code < 200 || code > 599 {
		http.Error(w, "a status is 200 to 599", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = code
}

func (b *billing) list(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order")
	b.mu.Lock()
	defer b.mu.Unlock()
	shown := []arrival{}
	for _, a := range b.arrivals {
		if order == "" || a.Order == order {
			shown = append(shown, a)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(shown)
}
