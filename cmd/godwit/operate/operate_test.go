package operate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// server answers paths of the API.
func server(t *testing.T, answers map[string]string) Connection {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[strings.TrimPrefix(r.URL.Path, "/_godwit/v1/")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			body = `{"error":"there is no \u001b[31msuch thing","code":"NotFound"}`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return Connection{Endpoint: s.URL, Output: "table"}
}

const overview = `{"server":{"region":"us-east-1","account":"000000000000"},"attention":[{"severity":"critical","kind":"health","text":"disk: full","arn":""}]}`

// A search that takes several calls reports how far it is, beside what it prints.
func TestSearchTellsItsProgress(t *testing.T) {
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/overview") {
			_, _ = w.Write([]byte(overview))
			return
		}
		if want := []string{"", "a", "b"}[calls]; r.FormValue("cursor") != want {
			t.Errorf("call %d goes on at %q", calls, r.FormValue("cursor"))
		}
		_, _ = w.Write([]byte([]string{
			`{"messages":[],"scanned":20000,"total":50000,"next":"a"}`, `{"messages":[],"scanned":20000,"total":50000,"next":"b"}`,
			`{"messages":[{"position":"0-1","messageId":"m","body":"found"}],"scanned":10000,"total":50000,"next":null}`,
		}[calls]))
		calls++
	}))
	defer s.Close()
	var out, told bytes.Buffer
	m := Messages{Connection: Connection{Endpoint: s.URL, Output: "table"}, Queue: "orders", Search: "x", Limit: 5}
	if err := m.Run(Streams{Out: &out, Err: &told}); err != nil || calls != 3 || !strings.Contains(out.String(), "found") {
		t.Errorf("%v after %d calls: %s", err, calls, out.String())
	}
	if got := told.String(); !strings.Contains(got, "20000 of 50000") || !strings.Contains(got, "40000 of 50000") || !strings.HasSuffix(got, "\n") {
		t.Errorf("told is %q", got)
	}
	if strings.Contains(out.String(), "of 50000") {
		t.Errorf("printed is %q", out.String())
	}
}

func TestTables(t *testing.T) {
	c := server(t, map[string]string{
		"overview": overview,
		"queues":   `{"queues":[{"name":"orders","visible":12,"inFlight":3,"delayed":0,"oldestAgeSeconds":61.5,"rates":null,"deadLetterQueue":null,"tags":{"team":"shop","env":"\u001b[31mprod"}}],"next":"x"}`,
		"queue":    `{"name":"orders","tags":{},"totals":{"sent":3,"deep":{"x":null}},"sources":["a","b"],"mappings":[],"policy":"` + strings.Repeat("long ", 30) + `"}`,
		"subscriptions": `{"subscriptions":[{"arn":"s","protocol":"http","endpoint":"http://x","state":"active","owed":0,"oldestAgeSeconds":null,"lastAttempt":{"detail":"","outcome":"success"}},
			{"arn":"t","protocol":"http","endpoint":"http://x","state":"failing","owed":2,"oldestAgeSeconds":1,"lastAttempt":{"detail":"HTTP 503","outcome":"server-error"}},
			{"arn":"u","protocol":"sqs","endpoint":"q","state":"active","owed":0,"oldestAgeSeconds":null,"lastAttempt":null}],"next":null}`,
		"messages":     `{"messages":[{"position":"0-1","messageId":"m","sentAt":"2024-02-29T12:00:00Z","state":"visible","receives":1,"sizeBytes":5,"deadLetter":{"cause":"c"},"body":"\u001b[2Jevil\n\u202e=1+1"}],"next":null}`,
		"redrives":     `{"redrives":[{"id":"r","state":"running","done":5,"total":10,"to":null,"startedAt":"2024-02-29T12:00:00Z","error":null}]}`,
		"dead-letters": `{"groups":[{"from":"a","kind":"queue","cause":"x","count":1},{"from":"b","kind":"subscription","cause":"y","count":7}],"next":null}`,
	})
	for name, tt := range map[string]struct {
		run  func(Streams) error
		want string
	}{
		"queues": {
			(&Queues{Connection: c}).Run,
			"NAME    VISIBLE  IN FLIGHT  DELAYED  OLDEST  SENT/S  RECEIVED/S  DEAD LETTERS TO  TAGS\n" +
				"orders       12          3        0    1m2s       –           –  –                env=\\u001b[31mprod, team=shop\n" +
				"There are more: narrow it down, or raise --limit.\n",
		},
		"one queue": {(&Queues{Connection: c, Queue: "orders"}).Run, "mappings       []\nname           orders\npolicy         " + strings.TrimSpace(strings.Repeat("long ", 30)) +
			"\nsources        a\n               b\ntags           {}\ntotals.deep.x  –\ntotals.sent    3\n"},
		"subscriptions": {
			(&listSubscriptions{Connection: c}).Run,
			"SUBSCRIPTION  PROTOCOL  ENDPOINT  STATE    OWED  OLDEST  LAST ATTEMPT\n" +
				"s             http      http://x  active      0       –  success\n" +
				"t             http      http://x  failing     2      1s  HTTP 503\n" +
				"u             sqs       q         active      0       –  –\n",
		},
		"messages": {
			(&Messages{Connection: c, Queue: "orders", Limit: 20}).Run,
			"POSITION  MESSAGE  SENT                  STATE    RECEIVES  BYTES  CAUSE  BODY\n" +
				"0-1       m        2024-02-29T12:00:00Z  visible         1      5  c      \\u001b[2Jevil\\u000a\\u202e=1+1\n",
		},
		"dead letters": {(&deadLetters{Connection: c, Queue: "dead"}).Run, "COUNT  FROM  KIND          CAUSE\n    7  b     subscription  y\n    1  a     queue         x\n"},
		"redrives": {
			(&redrives{Connection: c, Queue: "dead"}).Run,
			"ID  STATE    PROGRESS                      TO  STARTED               ERROR\n" +
				"r   running  ██████████░░░░░░░░░░ 5 of 10  –   2024-02-29T12:00:00Z  –\n",
		},
	} {
		var out bytes.Buffer
		if err := tt.run(Streams{Out: &out}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := strings.ReplaceAll(out.String(), "            \n", "\n")
		if strings.TrimLeft(got, " \n") != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	c := server(t, map[string]string{"queues": `{"queues":[{"name":"\u001b[31m"}],"next":null}`})
	c.Output = "json"
	var out bytes.Buffer
	if err := (&Queues{Connection: c}).Run(Streams{Out: &out}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"next\": null,\n  \"queues\": [\n    {\n      \"name\": \"\\u001b[31m\"\n    }\n  ]\n}\n"; out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// What a terminal would act on is escaped in JSON, too, and programs read what was said.
func TestJSONForTerminals(t *testing.T) {
	const name = "a\x1b[31m\u009b2J\u202eb\U000e0041c"
	c := server(t, map[string]string{"queues": `{"queues":[{"name":"a\u001b[31m` + name[6:] + `"}],"next":null}`})
	c.Output = "json"
	var out bytes.Buffer
	if err := (&Queues{Connection: c}).Run(Streams{Out: &out}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), unsafe) {
		t.Errorf("%q", out.String())
	}
	var read struct{ Queues []struct{ Name string } }
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.Queues[0].Name != name {
		t.Errorf("%+q, %v", read, err)
	}
}

func TestRefusals(t *testing.T) {
	c := server(t, nil)
	err := (&Queues{Connection: c}).Run(Streams{Out: &bytes.Buffer{}})
	if err == nil || err.Error() != `there is no \u001b[31msuch thing` {
		t.Errorf("%v", err)
	}
	if err := (&Doctor{Connection: server(t, map[string]string{"overview": overview})}).Run(Streams{Out: &bytes.Buffer{}}); err == nil {
		t.Error("a doctor is content with a full disk")
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain é", "\x1b[31m", "a\nb", "\u202eevil", "\xff\xfe", "\ufffd", "\u200b", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if strings.ContainsFunc(got, unsafe) {
			t.Errorf("%q becomes %q", s, got)
		}
		if Clean(got) != got {
			t.Errorf("%q is cleaned twice", s)
		}
	})
}
