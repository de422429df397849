package operate

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// A doctor examines what a server says of itself, and what is critical fails the command.
func TestDoctor(t *testing.T) {
	for name, tt := range map[string]struct {
		off      time.Duration // of the server's clock
		metrics  string        // empty: they are refused
		attend   string
		want     []string
		critical bool
	}{
		"all is well": {
			0, "godwit_disk_low 0\ngodwit_store_disk_bytes 2.097152e+06\ngodwit_limit_max{limit=\"connections\"} 100\ngodwit_limit_used{limit=\"connections\"} 3\n", "",
			[]string{"server  ok     godwit 1.2.3 serve", "agrees with this machine's", "admin-listen 127.0.0.1:1, listen 127.0.0.1:4566\n", "the store has 2 MiB", "there is room in all 1", "\nNothing needs a person."},
			false,
		},
		"a limit": {
			0, "godwit_disk_low 0\ngodwit_limit_max{limit=\"connections\"} 100\ngodwit_limit_used{limit=\"connections\"} 81\ngodwit_limit_max{limit=\"any\"} 0\ngodwit_limit_used{limit=\"any\"} 9\n", "",
			[]string{"limits  warning  nearly used up: connections: 81 of 100"},
			false,
		},
		"a limit of before": {
			0, "godwit_disk_low 0\ngodwit_limit_max{limit=\"connections\"} 100\ngodwit_limit_refused_total{limit=\"connections\"} 4\n", "",
			[]string{"refused since the start for want of it: connections: 4"},
			false,
		},
		"the disk":               {0, "godwit_disk_low 1\ngodwit_store_disk_bytes 1048576\n", "", []string{"disk    critical  it is short of space, and sends are refused: the store has 1 MiB", "limits  unknown"}, true},
		"a slow clock":           {-time.Minute, "godwit_disk_low 0\n", "", []string{"clock   warning  it is 1m0s off"}, false},
		"a wrong one":            {time.Hour, "godwit_disk_low 0\n", "", []string{"clock   critical  it is 1h0m0s off"}, true},
		"restored to look at it": {0, "godwit_disk_low 0\n", "", []string{"deliveries  warning  nothing is delivered", "until: godwit deliveries begin"}, false},
		"a node that follows":    {0, "godwit_limit_max{limit=\"connections\"} 100\n", "", []string{"disk    ok  no node of the cluster is short of space", "limits  ok"}, false},
		"a node without space":   {0, "godwit_limit_max{limit=\"any\"} 1\n", "", []string{"disk    warning  nodes are short of space, and refuse sends while one of them serves: b. Receive and delete messages, or add space"}, false},
		"metrics of no server":   {0, "godwit_limit_max{limit=\"none\"} 1\n", "", []string{"disk    unknown  the server tells nothing of its disk"}, false},
		"a node that is lost":    {0, "godwit_limit_max{limit=\"lost\"} 1\n", "", []string{"disk    unknown  nodes do not answer: b"}, false},
		"an owner without space": {0, "godwit_limit_max{limit=\"owner\"} 1\n", "", []string{"disk    critical  nodes are short of space"}, true},
		"no metrics":             {0, "", "", []string{"disk    unknown  the metrics cannot be read: not for you \\u001b[31m"}, false},
		"an endpoint": {
			0, "godwit_disk_low 0\n", `{"severity":"critical","kind":"failing-endpoint","text":"503 \u001b[31m","arn":"s"}`,
			[]string{"critical  failing-endpoint  s         503 \\u001b[31m", "What comes next: godwit deliveries s"},
			true,
		},
		"what comes next": {
			0, "godwit_disk_low 0\n", `{"severity":"warning","kind":"dead-letters","text":"2","arn":"arn:aws:sqs:r:1:d"},{"severity":"warning","kind":"source","text":"a: paused","arn":""},` +
				`{"severity":"warning","kind":"source","text":"b: paused","arn":""},{"severity":"warning","kind":"paused","text":"x","arn":"$(reboot)"},{"severity":"warning","kind":"alarm","text":"y","arn":"z"}`,
			[]string{"What comes next: godwit dlq show arn:aws:sqs:r:1:d godwit sources\n$"},
			false,
		},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/_godwit/v1/overview":
				_, _ = w.Write([]byte(`{"server":{"version":"1.2.3","mode":"serve","clock":"system","now":"` + clock.System.Now().Add(tt.off).UTC().Format(time.RFC3339Nano) + `"},"attention":[` + tt.attend + `]}`))
			case "/_godwit/v1/delivering":
				_, _ = fmt.Fprintf(w, `{"held":%v,"changed":false}`, name == "restored to look at it")
			case "/_godwit/v1/settings":
				_, _ = w.Write([]byte(`{"settings":[{"name":"listen","value":"127.0.0.1:4566"},{"name":"admin-listen","value":"127.0.0.1:1"},{"name":"ingest-listen","value":""},{"name":"data","value":"x"}]}`))
			case "/_godwit/v1/cluster":
				switch {
				case strings.Contains(tt.metrics, "lost"):
					_, _ = w.Write([]byte(`{"nodes":[{"name":"a","state":"serving"},{"name":"b","state":"unreachable"}]}`))
				case strings.Contains(tt.metrics, "owner"):
					_, _ = w.Write([]byte(`{"nodes":[{"name":"a","state":"serving","diskLow":true},{"name":"b","state":"following"}]}`))
				case strings.Contains(tt.metrics, "any"):
					_, _ = w.Write([]byte(`{"nodes":[{"name":"a","state":"serving"},{"name":"b","state":"following","diskLow":true}]}`))
				case strings.Contains(tt.metrics, "none"):
					w.WriteHeader(http.StatusNotFound)
				default:
					_, _ = w.Write([]byte(`{"nodes":[{"name":"a","state":"serving"},{"name":"b","state":"following"}]}`))
				}
			case "/metrics":
				if tt.metrics == "" {
					w.WriteHeader(http.StatusForbidden)
					_, _ = w.Write([]byte(`{"error":"not for you \u001b[31m","code":"AccessDenied"}`))
					return
				}
				_, _ = w.Write([]byte("# HELP x y\n" + tt.metrics))
			}
		}))
		var out bytes.Buffer
		err := (&Doctor{Connection{Endpoint: s.URL, Output: "table"}}).Run(Streams{Out: &out, Err: &out})
		s.Close()
		if errors.Is(err, errSick) != tt.critical || err != nil && !tt.critical {
			t.Errorf("%s: %v", name, err)
		}
		squeezed := out.String()
		for _, want := range tt.want {
			have, end := strings.Join(strings.Fields(squeezed), " "), strings.HasSuffix(want, "\n$")
			want = strings.Join(strings.Fields(strings.TrimSuffix(want, "$")), " ")
			if !strings.Contains(have, want) || end && !strings.HasSuffix(have, want) {
				t.Errorf("%s: %q is missing of\n%s", name, want, squeezed)
			}
		}
		if strings.ContainsFunc(strings.ReplaceAll(squeezed, "\n", ""), unsafe) {
			t.Errorf("%s: %q", name, squeezed)
		}
	}
}

// A certificate is looked at where there is one.
func TestCertificateCheck(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for left, want := range map[time.Duration]string{90 * 24 * time.Hour: fine, 20 * 24 * time.Hour: warning, 6 * 24 * time.Hour: critical, -time.Hour: critical} {
		if state, text := certificateCheck(now.Add(left), now); state != want || !strings.Contains(text, now.Add(left).Format(time.RFC3339)) {
			t.Errorf("%v left: %s, %s", left, state, text)
		}
	}
}
