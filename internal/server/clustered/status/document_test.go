package status

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
)

// What nodes answer is what the operator's API says of GET /_godwit/v1/cluster, member by member.
func TestStatusIsAsDocumented(t *testing.T) {
	ours := Cluster{
		Nodes: []Node{{Name: "a", URL: "http://a", PID: 1, Process: "p", Version: "1.2.3", State: Copying, Number: 2, Lag: 3, Durable: 4, Needs: 5, Copied: 6, ToCopy: 7, Fresh: true, LogStopped: true, DiskLow: true, Answered: 8, Forwarded: 9, Certificate: &Certificate{Expires: time.Unix(1, 0).UTC(), Authority: "x", Trusts: []string{"x", "y"}}}},
		Cells: []Cell{{Cell: 1, Owner: "a", Epoch: 2, Number: 3, Lag: 4, Leader: "b", LogFirst: 5, LogLast: 6, LogBytes: 7}},
	}
	text, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	var documented catalog.Cluster
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&documented); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(documented); err != nil || !bytes.Equal(again, text) {
		t.Errorf("documented: %s, %v; answered: %s", again, err, text)
	}
}
