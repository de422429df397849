package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// hoseInterval is how long delivery streams wait for more.
const hoseInterval = 5 * time.Second

// drop is a record of a delivery stream.
type drop struct {
	accepted truth
	posted   string          // the request to the endpoint that had it
	taken    truth           // by the endpoint
	objects  map[string]bool // that have it
}

// deliveryStreams is what the world knows of delivery streams: pond, whose objects are in a bucket,
// and lake, which has an endpoint and a bucket behind it.
type deliveryStreams struct {
	drops   map[string]*drop
	order   []string
	posts   map[string][]string // what a request had, by its id
	taken   map[string]int      // the number of crashes when the endpoint had taken it
	ids     map[string]string   // of requests, by what the network knows them by
	objects map[string][]string // what they have, by their names
}

func newDeliveryStreams() *deliveryStreams {
	return &deliveryStreams{drops: map[string]*drop{}, posts: map[string][]string{}, taken: map[string]int{}, ids: map[string]string{}, objects: map[string][]string{}}
}

// pour puts records into a delivery stream.
func (w *world) pour() {
	stream := pick(w, []string{"pond", "lake"})
	var tokens []string
	var records []map[string]any
	for range 1 + w.rand.IntN(4) {
		tok := w.token("r") + "@" + stream
		tokens = append(tokens, tok)
		records = append(records, map[string]any{"Data": base64.StdEncoding.EncodeToString([]byte(tok + w.padding() + "\n"))})
		w.deliveryStreams.drops[tok] = &drop{accepted: maybe, objects: map[string]bool{}}
		w.deliveryStreams.order = append(w.deliveryStreams.order, tok)
	}
	low := w.disk.isLow()
	in := map[string]any{"DeliveryStreamName": stream, "Records": records}
	w.begin(fmt.Sprintf("pour %s", tokens), streamRequest("PutRecordBatch", in), func(a *answer) {
		out := parse[struct {
			RequestResponses []struct{ RecordId string }
		}](a)
		for i, tok := range tokens {
			switch {
			case a.ok() && i < len(out.RequestResponses) && out.RequestResponses[i].RecordId != "":
				w.deliveryStreams.drops[tok].accepted = yes
			case a.status != 0:
				w.deliveryStreams.drops[tok].accepted = no
				if !low && !w.disk.isLow() {
					w.ledger.fail("%s was refused: %s", tok, a.body)
				}
			}
		}
	})
}

// dropsIn are the tokens of what a delivery has.
func dropsIn(text string) (tokens []string) {
	for line := range strings.Lines(text) {
		tokens = append(tokens, token(strings.TrimSuffix(line, "\n")))
	}
	return tokens
}

// see notes that a record is where it came to; w.mu is held.
func (w *world) see(tok, where string) *drop {
	d := w.deliveryStreams.drops[tok]
	if d == nil {
		w.ledger.fail("%s has %q, which nobody put into a stream", where, tok)
		return nil
	}
	if d.accepted == no {
		w.ledger.fail("%s has %s, which was refused", where, tok)
	}
	return d
}

// lakeAnswer is the HTTP endpoint of a delivery stream.
func (w *world) lakeAnswer(r *request) (int, http.Header, string) {
	var in struct {
		RequestID string `json:"requestId"`
		Records   []struct {
			Data []byte `json:"data"`
		} `json:"records"`
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := json.Unmarshal(r.body, &in); err != nil || in.RequestID != r.header.Get(requestID) {
		w.ledger.fail("the lake was sent a request that is none: %v", err)
	}
	var tokens []string
	for _, record := range in.Records {
		tokens = append(tokens, dropsIn(string(record.Data))...)
	}
	if before, again := w.deliveryStreams.posts[in.RequestID]; again && !slices.Equal(before, tokens) {
		w.ledger.fail("a request has %s, and had %s", tokens, before)
	}
	w.deliveryStreams.posts[in.RequestID] = tokens
	w.deliveryStreams.ids[carried(r.body)] = in.RequestID
	for _, tok := range tokens {
		if d := w.see(tok, "the lake"); d != nil {
			if d.posted != "" && d.posted != in.RequestID {
				w.ledger.fail("%s is in two requests to the lake", tok)
			}
			d.posted = in.RequestID
		}
	}
	if crashes, taken := w.deliveryStreams.taken[in.RequestID]; taken && crashes == w.crashes {
		w.ledger.fail("the lake was sent %s again after it had taken them", tokens)
	}
	status, _, _ := hookAnswer(r)
	if status != http.StatusOK {
		return status, nil, ""
	}
	return status, http.Header{"Content-Type": {"application/json"}}, fmt.Sprintf(`{"requestId":%q,"timestamp":%d}`, in.RequestID, began.UnixMilli())
}

// poured notes how an attempt at a stream's endpoint ended; w.mu is held.
func (w *world) poured(a attempt) {
	if !strings.HasPrefix(a.host, "lake.") || a.fate != arrives && a.fate != halves && a.fate != loses && a.fate != perishes {
		return
	}
	is, id := maybe, w.deliveryStreams.ids[a.key]
	if a.fate == arrives && a.answered {
		is = yes
		w.deliveryStreams.taken[id] = w.crashes
	}
	for _, tok := range w.deliveryStreams.posts[id] {
		if d := w.deliveryStreams.drops[tok]; d != nil {
			d.taken = max(d.taken, is)
		}
	}
}

// bucketAnswer is the bucket of delivery streams.
func (w *world) bucketAnswer(r *request) (int, http.Header, string) {
	if status, _, _ := hookAnswer(r); status != http.StatusOK {
		return status, http.Header{"Content-Type": {"application/xml"}}, "<Error><Code>InternalError</Code><Message>simulated</Message></Error>"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(r.body)
	if strings.Contains(r.path, "http-endpoint-failed") {
		var records strings.Builder
		for line := range strings.Lines(text) {
			var failed struct {
				RawData []byte `json:"rawData"`
			}
			if err := json.Unmarshal([]byte(line), &failed); err != nil {
				w.ledger.fail("%s has %q: %v", r.path, line, err)
			}
			records.Write(failed.RawData)
		}
		text = records.String()
	}
	tokens := dropsIn(text)
	if before, again := w.deliveryStreams.objects[r.path]; again && !slices.Equal(before, tokens) {
		w.ledger.fail("%s is written anew with %s, and had %s", r.path, tokens, before)
	}
	w.deliveryStreams.objects[r.path] = tokens
	for _, tok := range tokens {
		if d := w.see(tok, "the bucket"); d != nil {
			if d.objects[r.path] = true; len(d.objects) > 1 {
				w.ledger.fail("%s is in two objects", tok)
			}
		}
	}
	return http.StatusOK, http.Header{"Etag": {`"0"`}}, ""
}

// settleStreams checks that every record that was taken is somewhere.
func (w *world) settleStreams() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tok := range w.deliveryStreams.order {
		if d := w.deliveryStreams.drops[tok]; d.accepted == yes && d.taken == no && len(d.objects) == 0 {
			w.ledger.fail("%s was put into a stream, and is nowhere", tok)
		}
	}
}
