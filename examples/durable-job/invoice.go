package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// An invoice is the job: to charge a customer, once.
type invoice struct {
	Invoice string `json:"invoice"`
	Cents   int64  `json:"cents"`
}

// payments is the service that charges customers.
type payments struct {
	url  string
	http *http.Client
}

// tries is how often a charge is tried before the job goes back to the queue.
const tries = 3

// charge is the work. What passes in a moment is tried again here: it would be
// a waste to send the job back to the queue for it. The key makes a second
// charge harmless, for nobody knows whether a request that failed has been
// executed.
func (p *payments) charge(ctx context.Context, key, body string) (receipt string, err error) {
	var job invoice
	if err := json.Unmarshal([]byte(body), &job); err != nil {
		return "", fmt.Errorf("not an invoice: %w", err)
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, time.Second
	return backoff.Retry(ctx, func() (string, error) { return p.chargeOnce(ctx, key, job) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(tries))
}

func (p *payments) chargeOnce(ctx context.Context, key string, job invoice) (receipt string, err error) {
	body, err := json.Marshal(job)
	if err != nil {
		return "", backoff.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", backoff.Permanent(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := p.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch text := strings.TrimSpace(string(answer)); {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusOK:
		return text, nil
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	default: // no retry here will help
		return "", backoff.Permanent(fmt.Errorf("%s: %s", resp.Status, text))
	}
}
