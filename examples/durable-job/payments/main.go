// Command payments stands in for a service that charges customers: it fails
// now and then, before or after it has charged; a person looks at large
// amounts, which takes longer; and nobody is charged twice for one
// Idempotency-Key.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"
)

// large is the amount in cents from which on a person looks at a charge.
const large = 1_000_000

func main() {
	listen := flag.String("listen", "127.0.0.1:8098", "address")
	flaky := flag.Float64("flaky", 0.2, "share of the small amounts that fail")
	takes := flag.Duration("takes", 100*time.Millisecond, "time that a charge takes")
	look := flag.Duration("look", 5*time.Second, "time that a large amount takes instead")
	flag.Parse()
	t := &till{flaky: *flaky, takes: *takes, look: *look, charges: map[string]*charge{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", t.charge)
	mux.HandleFunc("GET /charges", t.list)
	fmt.Fprintln(os.Stderr, "payments:", http.ListenAndServe(*listen, mux))
	os.Exit(1)
}

// A charge is what was charged under one key, and how often that was asked for.
type charge struct {
	Invoice  string `json:"invoice"`
	Cents    int64  `json:"cents"`
	Requests int    `json:"requests"`
}

type till struct {
	flaky       float64
	takes, look time.Duration

	mu      sync.Mutex
	charges map[string]*charge // by key
}

func (t *till) charge(w http.ResponseWriter, r *http.Request) {
	var asked charge
	key := r.Header.Get("Idempotency-Key")
	switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&asked); {
	case err != nil || key == "":
		http.Error(w, "want an Idempotency-Key and an invoice", http.StatusBadRequest)
		return
	case asked.Cents <= 0:
		http.Error(w, "the amount must be positive", http.StatusUnprocessableEntity)
		return
	}
	takes, luck := t.takes, rand.Float64()
	if asked.Cents >= large {
		takes, luck = t.look, 1 // people are slow, but they never fail
	}
	if wait(r.Context(), takes) != nil {
		return // the client is gone
	}
	if luck < t.flaky/2 {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	receipt := t.execute(key, asked)
	if luck < t.flaky {
		http.Error(w, "charged, but lost the answer", http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, receipt)
}

// execute charges, unless that has been done under this key.
func (t *till) execute(key string, asked charge) (receipt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.charges[key]
	if c == nil {
		c = &charge{Invoice: asked.Invoice, Cents: asked.Cents}
		t.charges[key] = c
	}
	c.Requests++
	return "receipt for " + c.Invoice
}

func (t *till) list(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	text, err := json.Marshal(t.charges)
	t.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(text, '\n'))
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
