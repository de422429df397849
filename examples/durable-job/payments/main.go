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
	"log"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// large is the amount in cents from which on a person looks at a charge.
const large = 1_000_000

func main() {
	listen := flag.String("listen", "127.0.0.1:8098", "address")
	flaky := flag.Float64("flaky", 0.2, "share of the small amounts that fail")
	look := flag.Duration("look", 5*time.Second, "time that a large amount takes")
	flag.Parse()
	t := &till{flaky: *flaky, look: *look, charges: map[string]*charge{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", t.charge)
	mux.HandleFunc("GET /charges", t.list)
	log.Fatal(http.ListenAndServe(*listen, mux))
}

// A charge is what was charged under one key, and how often that was asked for.
type charge struct {
	Invoice  string `json:"invoice"`
	Cents    int64  `json:"cents"`
	Requests int    `json:"requests"`
}

type till struct {
	flaky float64
	look  time.Duration

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
	case asked.Cents >= large:
		if err := wait(r.Context(), t.look); err == nil { // else the client is gone
			fmt.Fprintln(w, t.execute(key, asked))
		}
		return
	}
	luck := rand.Float64()
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
	defer t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(t.charges); err != nil {
		log.Print(err)
	}
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
