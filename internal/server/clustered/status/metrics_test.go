package status

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What is told to Prometheus is what the status has; the alert rules that are deployed ask
// for nothing else.
func TestMetrics(t *testing.T) {
	s := Cluster{
		Nodes: []Node{
			{Name: "a", State: Serving, Number: 40, Certificate: &Certificate{Expires: time.Unix(1_800_000_000, 0)}},
			{Name: "b", State: Copying, Lag: 40, LogStopped: true, DiskLow: true, Answered: 3, Forwarded: 5, Copied: 10, ToCopy: 30},
			{Name: "c", State: Unreachable},
		},
		Cells: []Cell{{Owner: "a", Epoch: 7, Number: 40, LogFirst: 30, LogLast: 45, LogBytes: 1000}},
	}
	out := httptest.NewRecorder()
	Metrics(func(context.Context) Cluster { return s }).ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_godwit/v1/cluster/metrics", nil))
	text := out.Body.String()
	for _, want := range []string{
		`godwit_cluster_node_up{node="a"} 1`, `godwit_cluster_node_up{node="c"} 0`, `godwit_cluster_node_state{node="b",state="copying"} 1`,
		`godwit_cluster_node_lag_records{node="b"} 40`, `godwit_cluster_node_log_stopped{node="a"} 0`, `godwit_cluster_node_log_stopped{node="b"} 1`, `godwit_cluster_node_disk_low{node="a"} 0`, `godwit_cluster_node_disk_low{node="b"} 1`, `godwit_cluster_node_requests_total{how="answered",node="b"} 3`, `godwit_cluster_node_requests_total{how="forwarded",node="b"} 5`, `godwit_cluster_node_copy_left_bytes{node="b"} 20`, `godwit_cluster_cell_owned{cell="0"} 1`,
		`godwit_cluster_node_certificate_expires_seconds{node="a"} 1.8e+09`, `godwit_cluster_cell_epoch{cell="0"} 7`, `godwit_cluster_log_first_position{cell="0"} 30`, `godwit_cluster_log_bytes{cell="0"} 1000`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing of\n%s", want, text)
		}
	}
	if strings.Contains(text, `lag_records{node="c"}`) {
		t.Error("the lag of a node that is not reached is told")
	}
	rules, err := os.ReadFile("../../../../deploy/prometheus/cluster.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bgodwit_\w+`).FindAllString(string(rules), -1) {
		if !strings.Contains(text, "\n"+name+"{") {
			t.Errorf("the rules ask for %s, which is not there", name)
		}
	}
}
